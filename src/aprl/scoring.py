"""Playing matches: how often each side wins, counted without bias and with intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from aprl.envs import VecMultiEnv
from aprl.envs.base import Infos, Observations
from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.stats import WinRate
from aprl.training.embedding import GameOutcomes, PolicyPlayer

# Observations, actions, rewards, dones and infos of one step, as `VecMultiEnv` lays them out, and
# which environments play a game that counts.
StepObserver = Callable[
    [Observations, Sequence[np.ndarray], np.ndarray, np.ndarray, Infos, np.ndarray], None
]


@dataclass(frozen=True)
class Score:
    """Outcomes of finished games.

    Attributes:
        wins: per agent index.
        ties: games without a winner.
        unstable: ties among them that unstable physics or a non-finite action brought about.
        mean_length: steps per game.
    """

    wins: tuple[int, ...]
    ties: int
    unstable: int
    mean_length: float

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(self.wins) + self.ties

    def __add__(self, other: "Score") -> "Score":
        """Outcomes of both."""
        games = self.games + other.games
        steps = self.mean_length * self.games + other.mean_length * other.games
        return Score(
            wins=tuple(a + b for a, b in zip(self.wins, other.wins, strict=True)),
            ties=self.ties + other.ties,
            unstable=self.unstable + other.unstable,
            mean_length=steps / games if games else 0.0,
        )

    def win_rate(self, agent_idx: int) -> WinRate:
        """Games that one agent won, with the 95 % interval; a tie is not a win."""
        return WinRate(self.wins[agent_idx], self.games)

    def to_dict(self) -> dict[str, Any]:
        """Counts under the names of the original library, with rates and intervals."""
        result: dict[str, Any] = {f"win{i}": wins for i, wins in enumerate(self.wins)}
        result |= {"ties": self.ties, "games": self.games, "unstable": self.unstable}
        result["mean_length"] = self.mean_length
        for i in range(len(self.wins)):
            result[f"rate{i}"] = self.win_rate(i).rate
            result[f"interval{i}"] = list(self.win_rate(i).interval)
        return result

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Score":
        """Read what `to_dict` returned.

        Raises:
            KeyError: a count is missing.
            ValueError: a count is not a whole number.
        """
        wins = [values[f"win{i}"] for i in range(sum(f"win{i}" in values for i in range(9)))]
        counts = [*wins, values["ties"], values["unstable"]]
        if len(wins) < 2 or not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("counts are whole numbers, at least for two agents")
        return cls(tuple(wins), counts[-2], counts[-1], float(values["mean_length"]))


def play_games(
    venv: VecMultiEnv,
    policies: Sequence[Policy],
    episodes: int | None = None,
    timesteps: int | None = None,
    deterministic: bool | Sequence[bool] = False,
    on_progress: Callable[[int], None] | None = None,
    observers: Sequence[StepObserver] = (),
) -> Score:
    """Let policies play each other.

    With `episodes`, each environment plays its fixed share, so that short games are not counted
    more often than long ones. With `timesteps` alone, all games that finish within that many
    environment steps count.

    Args:
        venv: the game; it is reset.
        policies: one per agent.
        episodes: games in all, counted exactly.
        timesteps: bound on environment steps, over all environments.
        deterministic: play modes instead of samples; one for all agents, or one each.
        on_progress: told the number of games counted so far, after each step.
        observers: given each step as it was played, such as recorders.

    Raises:
        ConfigError: neither bound given, one not positive, or not one policy per agent.
    """
    if episodes is None and timesteps is None:
        raise ConfigError("give a number of episodes or of timesteps")
    for name, value in (("episodes", episodes), ("timesteps", timesteps)):
        if value is not None and value < 1:
            raise ConfigError(f"{name} must be at least 1, got {value}")
    if len(policies) != venv.num_agents:
        raise ConfigError(f"{venv.num_agents} policies are needed, {len(policies)} given")
    modes = [deterministic] * len(policies) if isinstance(deterministic, bool) else deterministic
    players = [
        PolicyPlayer(policy, venv.num_envs, mode)
        for policy, mode in zip(policies, modes, strict=True)
    ]
    outcomes = GameOutcomes(venv.num_agents)
    left = np.full(venv.num_envs, np.iinfo(np.int64).max)
    if episodes is not None:
        left[:] = episodes // venv.num_envs
        left[: episodes % venv.num_envs] += 1
    steps = 0
    obs = venv.reset()
    while left.any() and (timesteps is None or steps + venv.num_envs <= timesteps):
        actions = [player.act(o) for player, o in zip(players, obs, strict=True)]
        before = tuple(o.copy() for o in obs) if observers else obs
        obs, rewards, dones, infos = venv.step(actions)
        steps += venv.num_envs
        for observer in observers:
            observer(before, actions, rewards, dones, infos, left > 0)
        for player in players:
            player.observe_ends(dones)
        for env in np.flatnonzero(dones & (left > 0)):
            left[env] -= 1
            outcomes.count(infos[env])
        if on_progress is not None:
            on_progress(outcomes.games)
    return Score(
        wins=tuple(outcomes.wins),
        ties=outcomes.ties,
        unstable=outcomes.unstable,
        mean_length=outcomes.lengths / outcomes.games if outcomes.games else 0.0,
    )
