"""Square gridworlds, with or without a key, whose reward is a table that shaping can disguise.

A state is a cell, numbered n * x + y, plus n * n once the key is held. Moving against the wall
stays in place. Nothing terminates; episodes end by a time limit.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from aprl.errors import ConfigError, unknown_name
from aprl.reward_preprocessing.mdp import TabularMDP
from aprl.reward_preprocessing.transitions import TransitionTable
from aprl.rewards import RewardNet, ShapedRewardNet, TabularRewardNet
from aprl.rewards.potentials import TabularPotential

ACTIONS = ("stay", "left", "up", "right", "down")
_MOVES = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])
REWARDS = ("goal", "path")
SHAPINGS = ("unshaped", "dense", "antidense", "random")
_OFF_PATH = -0.4


@dataclass(frozen=True)
class Maze:
    """Layout, dynamics and reward of a maze.

    Attributes:
        size: cells per side, at least 3.
        key: the goal pays only with the key, which lies at (1, 1).
        reward: "goal" pays 1 for acting in the goal cell, (n - 2, n - 2); "path" also takes 0.4
            for acting anywhere but there, on the diagonal, or just above it.
        shaping: potential that the reward is shaped with: none, minus or plus the Manhattan
            distance to the goal, or uniform in [-1, 1].
        gamma: discount of the shaping.

    Raises:
        ConfigError: an unknown name, or a size that is too small.
    """

    size: int
    key: bool = False
    reward: Literal["goal", "path"] = "goal"
    shaping: Literal["unshaped", "dense", "antidense", "random"] = "unshaped"
    gamma: float = 0.99

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 3 + self.key:
            raise ConfigError(f"a maze needs a size of at least {3 + self.key}, got {self.size!r}")
        if self.reward not in REWARDS:
            raise unknown_name("maze reward", str(self.reward), REWARDS)
        if self.shaping not in SHAPINGS:
            raise unknown_name("shaping", str(self.shaping), SHAPINGS)

    @property
    def num_cells(self) -> int:
        """Cells of the grid."""
        return self.size**2

    @property
    def num_states(self) -> int:
        """States: cells, twice if there is a key."""
        return self.num_cells * (1 + self.key)

    @property
    def goal_cell(self) -> int:
        """Number of the goal's cell."""
        return self.size * (self.size - 2) + self.size - 2

    @property
    def key_cell(self) -> int | None:
        """Number of the key's cell."""
        return self.size + 1 if self.key else None

    @cached_property
    def next_states(self) -> np.ndarray:
        """`(num_states, 5)`: where each action leads."""
        cells = np.arange(self.num_cells)
        position = np.stack([cells // self.size, cells % self.size], axis=1)
        moved = position[:, None] + _MOVES
        inside = ((moved >= 0) & (moved < self.size)).all(axis=2, keepdims=True)
        moved = np.where(inside, moved, position[:, None])
        after = moved[..., 0] * self.size + moved[..., 1]
        if not self.key:
            return after
        without = np.where(after == self.key_cell, after + self.num_cells, after)
        return np.concatenate([without, after + self.num_cells])

    @cached_property
    def reachable(self) -> np.ndarray:
        """`(num_states,)` bool: nobody is on the key's cell without the key."""
        possible = np.ones(self.num_states, bool)
        if self.key:
            possible[self.key_cell] = False
        return possible

    @cached_property
    def start_states(self) -> np.ndarray:
        """States in which an episode may begin: cells without goal and key, key not held."""
        special = [self.goal_cell] if self.key_cell is None else [self.goal_cell, self.key_cell]
        return np.setdiff1d(np.arange(self.num_cells), special)

    @property
    def fixed_start(self) -> int:
        """The start when it is not random: cell (n - 2, 1)."""
        return self.size * (self.size - 2) + 1

    @cached_property
    def state_rewards(self) -> np.ndarray:
        """`(num_states,)` unshaped reward for acting in a state."""
        x, y = np.divmod(np.arange(self.num_cells), self.size)
        on_path = (y == x) | (y == x + 1)
        rewards = np.where(on_path | (self.reward == "goal"), 0.0, _OFF_PATH)
        rewards = np.tile(rewards, 1 + self.key)
        rewards[self.num_states - self.num_cells + self.goal_cell] = 1.0
        return rewards

    @cached_property
    def potential(self) -> np.ndarray:
        """`(num_states,)` of the shaping; the key makes no difference to it."""
        x, y = np.divmod(np.arange(self.num_cells), self.size)
        distance = np.abs(x - (self.size - 2)) + np.abs(y - (self.size - 2))
        values = {
            "unshaped": lambda: np.zeros(self.num_cells),
            "dense": lambda: -distance.astype(float),
            "antidense": lambda: distance.astype(float),
            "random": lambda: np.random.default_rng(0).uniform(-1, 1, self.num_cells),
        }[self.shaping]()
        return np.tile(values, 1 + self.key)

    def rewards(self, states: np.ndarray, next_states: np.ndarray) -> np.ndarray:
        """Shaped rewards of transitions, elementwise."""
        change = self.gamma * self.potential[next_states] - self.potential[states]
        return self.state_rewards[states] + change

    def mdp(self) -> TabularMDP:
        """The dynamics, every possible state and action once, ordered by state, then action."""
        states = np.repeat(np.flatnonzero(self.reachable), len(ACTIONS))
        actions = np.tile(np.arange(len(ACTIONS)), int(self.reachable.sum()))
        table = TransitionTable.of(states, actions, self.next_states[states, actions])
        return TabularMDP(self.num_states, len(ACTIONS), table, np.ones(len(table)))

    def reward_net(self) -> RewardNet:
        """The true reward as a net."""
        observation_space, action_space = spaces.Discrete(self.num_states), spaces.Discrete(5)
        base = TabularRewardNet(observation_space, action_space, ["state"], self.state_rewards)
        if self.shaping == "unshaped":
            return base
        potential = TabularPotential(self.num_states)
        potential.set_coefficients(self.potential)
        return ShapedRewardNet(base, potential, self.gamma)


class MazeEnv(gymnasium.Env):
    """A maze as an environment.

    Args:
        size: see `Maze`.
        key: see `Maze`.
        reward: see `Maze`.
        shaping: see `Maze`.
        gamma: see `Maze`.
        random_start: begin anywhere but on goal and key; otherwise at cell (n - 2, 1).
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        size: int,
        key: bool = False,
        reward: Literal["goal", "path"] = "goal",
        shaping: Literal["unshaped", "dense", "antidense", "random"] = "unshaped",
        gamma: float = 0.99,
        random_start: bool = True,
    ) -> None:
        self.maze = Maze(size, key, reward, shaping, gamma)
        self.random_start = random_start
        self.observation_space = spaces.Discrete(self.maze.num_states)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._state = self.maze.fixed_start

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode; see `gymnasium.Env.reset`."""
        super().reset(seed=seed)
        starts = self.maze.start_states
        self._state = self.maze.fixed_start
        if self.random_start:
            self._state = int(self.np_random.choice(starts))
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Move; see `gymnasium.Env.step`. Nothing terminates."""
        before = self._state
        self._state = int(self.maze.next_states[before, action])
        reward = self.maze.rewards(np.array(before), np.array(self._state))
        return self._state, float(reward), False, False, {}
