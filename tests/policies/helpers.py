"""Small policies and vectors for the tests of this folder."""

import numpy as np
import torch
from gymnasium import spaces

from aprl.policies import ActorCriticMlp, MlpPolicy

OBS_DIM, ACT_DIM = 6, 3


def observation_box(size=OBS_DIM):
    return spaces.Box(-np.inf, np.inf, (size,), np.float32)


def action_box(size=ACT_DIM, bound=0.4):
    return spaces.Box(-bound, bound, (size,), np.float32)


def mlp_policy(observation_space=None, action_space=None, seed=0, weights=1, **sizes):
    """A policy with random weights and a normaliser that does something."""
    observation_space = observation_space or observation_box()
    action_space = action_space or action_box()
    with torch.random.fork_rng():
        torch.manual_seed(weights)
        discrete = isinstance(action_space, spaces.Discrete)
        network = ActorCriticMlp(
            spaces.flatdim(observation_space),
            spaces.flatdim(action_space),
            discrete=discrete,
            **{"policy_layers": [5, 4], "value_layers": [7], "clip": 2.0} | sizes,
        )
        with torch.no_grad():
            network.obs_mean.normal_()
            network.obs_std.uniform_(0.5, 2.0)
            network.value_mean.fill_(10.0)
            network.value_std.fill_(3.0)
            if network.log_std is not None:
                network.log_std.uniform_(-2.0, -1.0)
    return MlpPolicy(network, observation_space, action_space, seed)


def observations(n, size=OBS_DIM, seed=0):
    return np.random.default_rng(seed).standard_normal((n, size), dtype=np.float32)


def reference_mlp(policy, obs):
    """The network written out in NumPy float64: head of the policy, value, hidden activations."""
    parts = {k: v.double().numpy() for k, v in policy.network.state_dict().items()}
    clip = policy.network.clip
    z = np.clip((obs.astype(np.float64) - parts["obs_mean"]) / parts["obs_std"], -clip, clip)
    heads, hidden = [], []
    for tower, layers in (
        ("policy_tower", policy.network.policy_layers),
        ("value_tower", policy.network.value_layers),
    ):
        x, units = z, []
        for i in range(len(layers)):
            x = np.tanh(x @ parts[f"{tower}.{i}.weight"].T + parts[f"{tower}.{i}.bias"])
            units.append(x)
        i = len(layers)
        heads.append(x @ parts[f"{tower}.{i}.weight"].T + parts[f"{tower}.{i}.bias"])
        hidden.append(np.concatenate(units, axis=1))
    return heads[0], heads[1][:, 0] * parts["value_std"] + parts["value_mean"], hidden
