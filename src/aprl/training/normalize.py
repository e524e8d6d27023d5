"""Running normalisation of observations and rewards, for float32 batches."""

from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common import vec_env
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn


class VecNormalize(vec_env.VecNormalize):
    """SB3's `VecNormalize`, same statistics, in fewer passes over the batch; and resumable.

    Observations stay float32 throughout; SB3 makes two float64 copies of each batch, which at 64
    environments costs more than computing the observations.
    """

    def __init__(self, venv: VecEnv, norm_obs: bool, norm_reward: bool, gamma: float) -> None:
        # Discrete observations have nothing to normalise.
        norm_obs = norm_obs and isinstance(venv.observation_space, spaces.Box)
        super().__init__(venv, norm_obs=norm_obs, norm_reward=norm_reward, gamma=gamma)

    def step_wait(self) -> VecEnvStepReturn:
        """Play the step; observations and rewards come back normalised, in float32."""
        obs, rewards, dones, infos = self.venv.step_wait()
        assert isinstance(obs, np.ndarray)
        self.old_obs, self.old_reward = obs, rewards
        if self.training and self.norm_obs:
            self._update_obs(obs)
        if self.training:
            self._update_reward(rewards)
        for env in np.flatnonzero(dones):
            last = infos[env]["terminal_observation"]
            infos[env]["terminal_observation"] = self.normalize_obs(last)
        self.returns[dones] = 0
        return self.normalize_obs(obs), self.normalize_reward(rewards), dones, infos

    @property
    def observation_moments(self) -> RunningMeanStd:
        """Running mean and variance of the observations, each `(obs_dim,)`."""
        assert isinstance(self.obs_rms, RunningMeanStd)
        return self.obs_rms

    def observation_std(self) -> np.ndarray:
        """What observations are divided by, `(obs_dim,)` float64."""
        return np.sqrt(self.observation_moments.var + self.epsilon)

    def _update_obs(self, obs: np.ndarray) -> None:
        mean = obs.mean(axis=0)
        centred = obs - mean
        var = np.einsum("nd,nd->d", centred, centred) / len(obs)
        self.observation_moments.update_from_moments(
            mean.astype(np.float64), var.astype(np.float64), len(obs)
        )

    def normalize_obs(self, obs: np.ndarray) -> np.ndarray:  # type: ignore[override]
        """Normalise `(n, obs_dim)` or `(obs_dim,)` by the present statistics."""
        if not self.norm_obs:
            return obs
        mean = self.observation_moments.mean.astype(np.float32)
        scale = (1.0 / self.observation_std()).astype(np.float32)
        out = obs - mean
        out *= scale
        return np.clip(out, -self.clip_obs, self.clip_obs, out=out)

    def state_dict(self) -> dict[str, Any]:
        """Statistics and the discounted returns in progress."""
        state: dict[str, Any] = {"returns": self.returns.copy(), "reward": _moments(self.ret_rms)}
        if self.norm_obs:
            state["obs"] = _moments(self.observation_moments)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.returns = state["returns"].copy()
        _set_moments(self.ret_rms, state["reward"])
        if self.norm_obs:
            _set_moments(self.observation_moments, state["obs"])


def _moments(rms: RunningMeanStd) -> dict[str, Any]:
    return {"mean": np.array(rms.mean), "var": np.array(rms.var), "count": float(rms.count)}


def _set_moments(rms: RunningMeanStd, state: dict[str, Any]) -> None:
    rms.mean, rms.var, rms.count = state["mean"], state["var"], state["count"]
