"""The complete state of a Stable-Baselines3 algorithm, without pickles, to resume exactly.

SB3's own `save` leaves out the replay buffer, the last observation and the random generators. With
what is here, the environment's state and the global random generators
(`aprl.training.random_state`), a run goes on as if it had never stopped.
"""

import copy
from collections import deque
from functools import reduce
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise, VectorizedActionNoise

from aprl.errors import ConfigError

_COUNTERS = (
    "num_timesteps",
    "_total_timesteps",
    "_current_progress_remaining",
    "_n_updates",
    "_episode_num",
    "_n_calls",
    "exploration_rate",
)
_LAST = ("_last_obs", "_last_episode_starts", "_last_original_obs")
_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """A copy of an optimiser's state, without integer keys, which JSON has not."""
    state = copy.deepcopy(optimizer.state_dict())
    return {
        "keys": list(state["state"]),
        "state": list(state["state"].values()),
        "param_groups": state["param_groups"],
    }


def load_optimizer_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Restore what `optimizer_state` returned."""
    values = dict(zip(state["keys"], state["state"], strict=True))
    optimizer.load_state_dict({"state": values, "param_groups": state["param_groups"]})


def learner_state(model: BaseAlgorithm) -> dict[str, Any]:
    """Copy everything that an algorithm needs to continue; valid between two updates.

    Covers the algorithms of Stable-Baselines3 and sb3-contrib on array observations with the plain
    replay buffer. Not covered: state-dependent exploration, which redraws its noise, and values
    that were recorded for the log but not dumped yet.

    Raises:
        ConfigError: a kind of replay buffer or recurrent state that it cannot save.
    """
    modules, tensors = model._get_torch_save_params()
    state: dict[str, Any] = {
        "counters": {n: getattr(model, n) for n in _COUNTERS if hasattr(model, n)},
        "last": {n: getattr(model, n, None) for n in _LAST},
        "episodes": list(model.ep_info_buffer or []),
        "successes": list(model.ep_success_buffer or []),
        "modules": {n: _module_state(_attribute(model, n)) for n in modules},
        "tensors": {n: _attribute(model, n) for n in tensors},
        "action_space_rng": model.action_space.np_random.bit_generator.state,
        "noise": [noise.noise_prev for noise in _ou_noises(model)],
        "lstm": _lstm_state(model),
    }
    replay = getattr(model, "replay_buffer", None)
    if replay is not None:
        if not isinstance(replay, ReplayBuffer) or replay.optimize_memory_usage:
            raise ConfigError("only the plain replay buffer can be saved, not memory-optimised")
        used = slice(None) if replay.full else slice(replay.pos)
        state["replay"] = {n: getattr(replay, n)[used] for n in _REPLAY}
        state["replay"] |= {"pos": replay.pos, "full": replay.full}
    return copy.deepcopy(state)


def load_learner_state(model: BaseAlgorithm, state: dict[str, Any]) -> None:
    """Restore what `learner_state` returned, into a model made with the same arguments.

    The environment's own state is restored by whoever saved it.
    """
    for name, value in state["counters"].items():
        setattr(model, name, value)
    for name, value in state["last"].items():
        setattr(model, name, value)
    model.ep_info_buffer = deque(state["episodes"], maxlen=model._stats_window_size)
    model.ep_success_buffer = deque(state["successes"], maxlen=model._stats_window_size)
    for name, value in state["modules"].items():
        part = _attribute(model, name)
        if isinstance(part, torch.optim.Optimizer):
            load_optimizer_state(part, value)
        else:
            part.load_state_dict(value)
    with torch.no_grad():
        for name, value in state["tensors"].items():
            _attribute(model, name).copy_(value)
    model.action_space.np_random.bit_generator.state = state["action_space_rng"]
    if state["noise"]:
        assert model.env is not None and model.action_noise is not None
        if model.env.num_envs > 1 and not isinstance(model.action_noise, VectorizedActionNoise):
            model.action_noise = VectorizedActionNoise(model.action_noise, model.env.num_envs)
        for noise, value in zip(_ou_noises(model), state["noise"], strict=True):
            noise.noise_prev = value
    if state["lstm"] is not None:
        kind = type(model._last_lstm_states)  # type: ignore[attr-defined]
        model._last_lstm_states = kind(*map(tuple, state["lstm"]))  # type: ignore[attr-defined]
    if "replay" in state:
        replay, saved = model.replay_buffer, state["replay"]  # type: ignore[attr-defined]
        for name in _REPLAY:
            getattr(replay, name)[: len(saved[name])] = saved[name]
        replay.pos, replay.full = saved["pos"], saved["full"]


def _attribute(model: BaseAlgorithm, path: str) -> Any:
    return reduce(getattr, path.split("."), model)


def _module_state(part: Any) -> dict[str, Any]:
    if isinstance(part, torch.optim.Optimizer):
        return optimizer_state(part)
    return dict(part.state_dict())


def _ou_noises(model: BaseAlgorithm) -> list[OrnsteinUhlenbeckActionNoise]:
    """The noise processes with memory, one per environment."""
    noise = model.action_noise
    processes = noise.noises if isinstance(noise, VectorizedActionNoise) else [noise]
    return [p for p in processes if isinstance(p, OrnsteinUhlenbeckActionNoise)]


def _lstm_state(model: BaseAlgorithm) -> list[list[torch.Tensor]] | None:
    states = getattr(model, "_last_lstm_states", None)
    return None if states is None else [list(part) for part in states]
