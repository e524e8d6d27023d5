"""What everything that is trained with Stable-Baselines3 shares."""

import contextlib
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnv

from aprl.errors import ConfigError
from aprl.stackelberg.small_ppo import SerialVecEnv, SmallPPO
from aprl.training.ppo import PPO, torch_threads

ENDLESS = 2**31 - 1  # steps of a run that is ended by its budget of samples


@contextlib.contextmanager
def isolated_random_state() -> Iterator[None]:
    """Give the global generators back as they were: SB3 seeds and draws from all three.

    PyTorch uses one thread inside the block: the networks are tiny.
    """
    python, array = random.getstate(), np.random.get_state()  # noqa: NPY002 - SB3 shuffles with it
    with torch.random.fork_rng(devices=[]), torch_threads(1):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(array)  # noqa: NPY002


def int_seed(sequence: np.random.SeedSequence) -> int:
    """A seed for libraries that take a whole number."""
    return int(sequence.generate_state(1)[0])


def make_ppo(
    env: gym.Env[Any, Any] | VecEnv, seed: np.random.SeedSequence, arguments: Mapping[str, Any]
) -> PPO:
    """SB3's PPO with an MLP on the CPU; to be called in `isolated_random_state`.

    Args:
        env: what to learn in.
        seed: of weights, actions and minibatches.
        arguments: of SB3's `PPO`, beside policy, environment, seed and device.

    Raises:
        ConfigError: arguments that PPO refuses.
    """
    venv = env if isinstance(env, VecEnv) else SerialVecEnv([lambda: env])
    values = {"policy_kwargs": {}, **arguments}
    rollout = values.get("n_steps", 2048) * venv.num_envs
    values["batch_size"] = min(values.get("batch_size", 64), rollout)
    try:
        return SmallPPO(venv, int_seed(seed), **values)
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(f"PPO refuses its arguments {values}: {error}") from None


class AfterUpdate(BaseCallback):
    """Calls back before the first rollout and after each update.

    Args:
        function: called without arguments.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        super().__init__()
        self._function = function

    def _on_rollout_start(self) -> None:
        self._function()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._function()


def modes(learner: PPO, observations: np.ndarray) -> np.ndarray:
    """Most likely action for each of a batch of observations."""
    actions, _ = learner.predict(observations, deterministic=True)
    return np.asarray(actions)


def state_modes(learner: PPO, n_states: int) -> np.ndarray:
    """`(S,)`: most likely action in each state, of a policy that observes state numbers."""
    return modes(learner, np.arange(n_states)).astype(np.int64)
