"""A small continuous game with a victim that is a network, and what an attack is told of it."""

import numpy as np
import torch

from aprl.envs import make_vec
from aprl.policies import ActorCriticLstm, ActorCriticMlp, LstmPolicy, MlpPolicy
from aprl.training.attacks import AttackSetting
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.shaping import RewardShapingVecWrapper

WEIGHTS = {"dense": {"reward_move": 0.1}, "sparse": {"reward_remaining": 2.0}}
VICTIM, ADVERSARY = 0, 1


def line(num_envs=3, seed=0, limit=6):
    return make_vec("aprl/CrowdedLine-v0", num_envs, seed, num_agents=2, max_episode_steps=limit)


def network_policy(kind="mlp", seed=0, env=None):
    """For the line itself, or for the spaces of another environment."""
    game = line(1)
    seen = env.observation_space if env else game.observation_spaces[0]
    acted = env.action_space if env else game.action_spaces[0]
    obs_dim = seen.shape[0]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if kind == "mlp":
            net, cls = ActorCriticMlp(obs_dim, 1, policy_layers=[4, 3], value_layers=[5]), MlpPolicy
        else:
            net, cls = ActorCriticLstm(obs_dim, 1, layer=4, hidden=3), LstmPolicy
        with torch.no_grad():
            net.log_std.fill_(-1.0)
            net.value_std.fill_(3.0)
            net.value_mean.fill_(0.5)
    return cls(net, seen, acted, seed)


def setting(**changes):
    values = {
        "agent_idx": ADVERSARY,
        "load": lambda kind, path: network_policy(kind, int(path)),
        "make_game": lambda n: line(n, seed=99),
        "sparse_weights": WEIGHTS["sparse"],
        "gamma": 0.9,
        "progress": lambda: 0.0,
        "seed": np.random.SeedSequence(7),
    }
    return AttackSetting(**{**values, **changes})


def stack(attack, victim="mlp", num_envs=3, limit=6, deterministic=False, **changes):
    """The attacked game as the learner sees it: (whole, flat, game)."""
    told = setting(**changes)
    game = line(num_envs, limit=limit)
    changed = attack.wrap_game(game, told)
    policy = network_policy(victim) if isinstance(victim, str) else victim
    flat = FlattenSingletonVecEnv(CurryVecEnv(changed, policy, VICTIM, deterministic), ADVERSARY)
    shaped = RewardShapingVecWrapper(flat, WEIGHTS, lambda progress: 0.0, told.progress)
    return attack.wrap_reward(shaped, flat, told), flat, game


def actions_for(num_envs, steps, seed=5):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (steps, num_envs, 1)).astype(np.float32)
