"""PAL as published: the policy leads, is asked first, and plays in the model that fits it."""

import itertools
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import nn

from aprl.configs.checks import require_at_least, require_within
from aprl.stackelberg.envs import BudgetSpent, CountedEnv, FiniteMDPEnv
from aprl.stackelberg.game import PolicyLeader, StackelbergGame, context_of, policy_queries
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.model import with_final_states
from aprl.stackelberg.runner import Report
from aprl.stackelberg.sb3 import (
    AfterUpdate,
    int_seed,
    isolated_random_state,
    make_ppo,
    state_modes,
)
from aprl.stackelberg.small_ppo import SerialVecEnv


@dataclass(frozen=True)
class PalConfig:
    """Options of PAL.

    Raises:
        ConfigError: a value out of range.
    """

    iterations: int = 100  # of sampling and fitting the world model; fewer if the budget ends
    episodes: int = 250  # real ones per iteration, each by a fresh random policy
    epochs: int = 1  # passes over an iteration's samples
    # Units per layer of the world model.
    hidden: list[int] = field(default_factory=lambda: [64, 64])
    learning_rate: float = 1e-3  # of the world model
    batch_size: int = 16  # of the world model
    policy_steps: int = 100_000  # of PPO in the model, query steps included; no real samples
    num_envs: int = 8  # episodes in the model at once
    ppo: dict[str, Any] = field(default_factory=dict)  # of SB3's PPO

    def __post_init__(self) -> None:
        for name in ("iterations", "episodes", "epochs", "batch_size", "policy_steps", "num_envs"):
            require_at_least(name, getattr(self, name), 1)
        for units in self.hidden:
            require_at_least("hidden", units, 1)
        require_within("learning_rate", self.learning_rate, 0, 1, open_low=True, open_high=True)


class WorldModel:
    """The follower: a network that predicts the next state from pair and policy answers.

    Args:
        task: what is known.
        config: of its training.
        seed: of weights and minibatches.
    """

    def __init__(self, task: Task, config: PalConfig, seed: np.random.SeedSequence) -> None:
        self.task, self._config = task, config
        self._generator = torch.Generator().manual_seed(int_seed(seed))
        sizes = [task.n_pairs + task.n_states + task.n_actions, *config.hidden]
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self._network = nn.Sequential(*layers, nn.Linear(sizes[-1], task.n_states))
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=config.learning_rate)
        self._responses: dict[bytes, FiniteMDP] = {}  # of the network as it is now, by context

    def _inputs(self, contexts: np.ndarray, pairs: np.ndarray) -> torch.Tensor:
        states, actions = np.divmod(pairs, self.task.n_actions)
        one_hot = [np.eye(self.task.n_states)[states], np.eye(self.task.n_actions)[actions]]
        return torch.as_tensor(np.hstack([contexts, *one_hot]), dtype=torch.float32)

    def fit(self, contexts: np.ndarray, pairs: np.ndarray, successors: np.ndarray) -> float:
        """Minimise the cross-entropy of next states; `(n, S * A)`, `(n,)`, `(n,)`.

        Returns:
            Mean loss of the last epoch, in nats.
        """
        self._responses.clear()
        inputs, targets = self._inputs(contexts, pairs), torch.as_tensor(successors)
        loss_sum = 0.0
        for _ in range(self._config.epochs):
            loss_sum = 0.0
            order = torch.randperm(len(targets), generator=self._generator)
            for batch in order.split(self._config.batch_size):
                loss = nn.functional.cross_entropy(self._network(inputs[batch]), targets[batch])
                self._optimizer.zero_grad()
                loss.backward()
                self._optimizer.step()
                loss_sum += loss.item() * len(batch)
        return loss_sum / len(targets)

    def respond(self, context: np.ndarray) -> FiniteMDP:
        """The model for a policy that gave these answers; see `aprl.stackelberg.game.Follower`."""
        key = context.tobytes()
        if key not in self._responses:
            self._responses[key] = self._predict(context)
        return self._responses[key]

    @torch.no_grad()
    def _predict(self, context: np.ndarray) -> FiniteMDP:
        pairs = np.arange(self.task.n_pairs)
        contexts = np.broadcast_to(context, (len(pairs), context.size))
        logits = self._network(self._inputs(contexts, pairs)).double()
        rows = torch.softmax(logits, dim=1).numpy()
        return FiniteMDP(self.task, with_final_states(self.task, rows))


def sample_random_policies(
    env: CountedEnv, episodes: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Play episodes, each by a fresh random stationary policy; fewer if the budget ends.

    Returns:
        Contexts `(n, S * A)`, pairs `(n,)`, next states `(n,)`.
    """
    task = env.task
    contexts, pairs, successors = [], [], []
    try:
        for _ in range(episodes):
            actions = rng.integers(task.n_actions, size=task.n_states)
            context = np.eye(task.n_actions)[actions].ravel()
            state, _ = env.reset()
            done = False
            while not done:
                action = int(actions[state])
                successor, _, terminated, truncated, _ = env.step(action)
                contexts.append(context)
                pairs.append(state * task.n_actions + action)
                successors.append(successor)
                state, done = successor, terminated or truncated
    except BudgetSpent:
        pass  # what was sampled before is used
    return np.array(contexts), np.array(pairs, dtype=int), np.array(successors, dtype=int)


class PolicyLeaderEnv(gym.Env[Any, Any]):
    """What the leader of PAL learns in: S query steps that pay nothing, then the fitted model.

    Observations are state numbers, actions action numbers, in both parts.

    Args:
        follower: responds to the answers with a model.
        seed: of the model's transitions.
    """

    def __init__(self, follower: WorldModel, seed: np.random.SeedSequence) -> None:
        task = follower.task
        self._follower = follower
        self._rng = np.random.default_rng(seed)
        self._queries = policy_queries(task)
        self.observation_space = spaces.Discrete(task.n_states)
        self.action_space = spaces.Discrete(task.n_actions)
        self._answers: list[np.ndarray] = []
        self._env: FiniteMDPEnv | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin with the first query."""
        self._answers, self._env = [], None
        return self._queries[0].state, {}

    def step(self, action: int) -> tuple[int, Any, bool, bool, dict[str, Any]]:
        """Take the answer to a query, or an action in the model that fits the answers."""
        if self._env is not None:
            return self._env.step(int(action))
        self._answers.append(np.eye(self._follower.task.n_actions)[int(action)])
        if len(self._answers) < len(self._queries):
            return self._queries[len(self._answers)].state, 0.0, False, False, {}
        model = self._follower.respond(context_of(self._answers))
        self._env = FiniteMDPEnv(model, int(self._rng.integers(2**63)))
        return self._env.reset()[0], 0.0, False, False, {}


@dataclass(frozen=True, eq=False)
class PalResult:
    """What PAL ended with.

    Attributes:
        policy: `(S,)` the leader's.
        model: the follower's, fitted to that policy.
        real_samples: taken.
    """

    policy: np.ndarray
    model: FiniteMDP
    real_samples: int


class Pal:
    """PAL, ready to learn."""

    def __init__(self, config: PalConfig) -> None:
        self.config = config

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> PalResult:
        """See `Method.learn`; the policy's modes are reported after each update."""
        config, task = self.config, env.task
        sample_seed, model_seed, leader_seed, env_seed = seed.spawn(4)
        rng = np.random.default_rng(sample_seed)
        with isolated_random_state():
            torch.manual_seed(int_seed(model_seed))
            follower = WorldModel(task, config, model_seed)
            for _ in range(config.iterations):
                data = sample_random_policies(env, config.episodes, rng)
                if not len(data[1]):
                    break  # the budget is spent
                follower.fit(*data)
            seeds = iter(env_seed.spawn(config.num_envs))
            envs = SerialVecEnv([lambda: PolicyLeaderEnv(follower, next(seeds))] * config.num_envs)
            learner = make_ppo(envs, leader_seed, config.ppo)
            learner.learn(
                config.policy_steps,
                AfterUpdate(lambda: report(state_modes(learner, task.n_states))),
            )
            policy = state_modes(learner, task.n_states)
            game = StackelbergGame(policy_queries(task), follower)
            model = game.play(PolicyLeader(policy, task.n_actions))
        return PalResult(policy, model, env.samples)
