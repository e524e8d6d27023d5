"""Bookkeeping that every game needs: returns and lengths of episodes, winners, terminal infos."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aprl.envs.base import Infos
from aprl.errors import ConfigError

TIE = -1


def require_positive(**values: int) -> None:
    """Check that each keyword argument is an integer of at least 1.

    Raises:
        ConfigError: one is not; the message names it and its value.
    """
    for name, value in values.items():
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < 1:
            raise ConfigError(f"{name} must be an integer of at least 1, not {value!r}")


class EpisodeTracker:
    """Returns and lengths of the episodes in progress, for `A` agents and `N` environments.

    Attributes:
        returns: `(A, N)` float64, sum of the rewards since the episode began.
        lengths: `(N,)` int64, steps since the episode began.
    """

    def __init__(self, num_agents: int, num_envs: int) -> None:
        """Start with no steps taken.

        Raises:
            ConfigError: a number below 1.
        """
        require_positive(num_agents=num_agents, num_envs=num_envs)
        self.returns = np.zeros((num_agents, num_envs), dtype=np.float64)
        self.lengths = np.zeros(num_envs, dtype=np.int64)

    def add(self, rewards: np.ndarray) -> None:
        """Count one step of every environment; `rewards` is `(A, N)`.

        Raises:
            ValueError: another shape (broadcasting would credit the wrong agent).
        """
        if rewards.shape != self.returns.shape:
            raise ValueError(f"rewards are {rewards.shape}, expected {self.returns.shape}")
        self.returns += rewards
        self.lengths += 1

    def winners(self) -> np.ndarray:
        """Agent with the strictly greatest return so far, `(N,)` int64; `TIE` where two share it.

        For games without a winner of their own; MuJoCo games name theirs by other rules.
        """
        best = self.returns.max(axis=0)
        shared = (self.returns == best).sum(axis=0) > 1
        return np.where(shared, TIE, self.returns.argmax(axis=0)).astype(np.int64)

    def finish(self, mask: np.ndarray) -> list[dict[str, float | int]]:
        """End the episodes of the environments in `mask` and start counting anew there.

        Args:
            mask: `(N,)` bool.

        Returns:
            For each True entry, in order: `r0`, `r1`, .. return per agent, `l` length in steps.
        """
        ended = np.flatnonzero(mask)
        episodes: list[dict[str, float | int]] = []
        for env in ended:
            returns = self.returns[:, env].tolist()
            episode: dict[str, float | int] = {f"r{i}": value for i, value in enumerate(returns)}
            episode["l"] = int(self.lengths[env])
            episodes.append(episode)
        self.returns[:, ended] = 0.0
        self.lengths[ended] = 0
        return episodes

    def restart(self) -> None:
        """Forget the episodes in progress, in every environment."""
        self.returns[:] = 0.0
        self.lengths[:] = 0

    def state_dict(self) -> dict[str, Any]:
        """Copies of `returns` and `lengths`."""
        return {"returns": self.returns.copy(), "lengths": self.lengths.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned.

        Raises:
            ConfigError: saved for another number of agents or environments.
        """
        returns = saved_array(state, "returns", self.returns.shape, np.float64)
        self.lengths = saved_array(state, "lengths", self.lengths.shape, np.int64)
        self.returns = returns


def saved_array(
    state: Mapping[str, Any], key: str, shape: tuple[int, ...], dtype: type[np.generic]
) -> np.ndarray:
    """A copy of one array of a saved state.

    Raises:
        ConfigError: it has another shape, as when saved with another number of environments.
    """
    array = np.array(state[key], dtype=dtype)
    if array.shape != shape:
        raise ConfigError(
            f"saved state {key!r} has shape {array.shape}, this game needs {shape}; load it into a "
            "game with the same number of agents and environments"
        )
    return array


def terminal_infos(
    done: np.ndarray,
    truncated: np.ndarray,
    observations: Sequence[np.ndarray],
    terms: Sequence[Mapping[str, np.ndarray]],
    winners: np.ndarray,
    episodes: Sequence[Mapping[str, float | int]],
) -> Infos:
    """Infos of one step as `VecMultiEnv` lays them out: empty except where the episode ended.

    Args:
        done: `(N,)` bool, True where the episode ended in this step.
        truncated: `(N,)` bool, True where it ended by the time limit alone.
        observations: per agent `(N, ..)`, *before* the new episode began; rows are copied.
        terms: per agent the reward terms of this step, each `(N,)`.
        winners: `(N,)` integers, index of the winning agent or `TIE`.
        episodes: one per True entry of `done`, in order, from `EpisodeTracker.finish`.

    Returns:
        A list of `N` dicts.
    """
    infos: Infos = [{} for _ in range(len(done))]
    for env, episode in zip(np.flatnonzero(done), episodes, strict=True):
        info = infos[env]
        for agent, agent_terms in enumerate(terms):
            info[agent] = {name: float(values[env]) for name, values in agent_terms.items()}
        if winners[env] != TIE:
            info[int(winners[env])]["winner"] = True
        info["terminal_observation"] = tuple(rows[env].copy() for rows in observations)
        info["TimeLimit.truncated"] = bool(truncated[env])
        info["episode"] = dict(episode)
    return infos
