"""Where transitions come from: saved trajectories, a policy, random actions, or mixtures.

Every source has its own seeds, derived from one; weights say how much each gives.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from aprl.configs.checks import check_entries
from aprl.errors import ConfigError
from aprl.policies.network import MlpPolicy
from aprl.reward_preprocessing.agents import load_agent
from aprl.reward_preprocessing.errors import TrajectoryError
from aprl.reward_preprocessing.import_trajectories import read_any_trajectories
from aprl.reward_preprocessing.trajectories import Trajectory, drop_steps, take_steps

MakeEnv = Callable[[], gymnasium.Env]


@dataclass(frozen=True)
class RolloutSource:
    """One source of trajectories.

    Attributes:
        random_prob: chance that an action is random instead of the policy's, drawn at each step
            of each environment.
        agent_path: policy that acts, deterministically; needed unless random_prob is 1.
        name: of the file that `create_rollouts` writes.
        rollout_path: saved trajectories, instead of acting.
        weight: share of this source in a mixture, relative to the others.

    Raises:
        ConfigError: fields that do not go together.
    """

    random_prob: float = 0.0
    agent_path: str | None = None
    name: str = "<unnamed>"
    rollout_path: str | None = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("random_prob", "weight"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(
                    f"{name} of rollout {self.name!r} must be a number, got {value!r}"
                )
        if not 0 <= self.random_prob <= 1:
            raise ConfigError(
                f"random_prob of rollout {self.name!r} must be in [0, 1], got {self.random_prob}"
            )
        if not 0 < self.weight < math.inf:
            raise ConfigError(
                f"weight of rollout {self.name!r} must be positive, got {self.weight}"
            )
        if self.rollout_path is not None:
            if self.agent_path is not None or self.random_prob != 0:
                raise ConfigError(
                    f"rollout {self.name!r} has a rollout_path, so that nobody acts: leave out "
                    "agent_path and random_prob"
                )
        elif self.agent_path is None and self.random_prob < 1:
            raise ConfigError(
                f"rollout {self.name!r} needs agent_path, rollout_path, or random_prob=1"
            )

    @classmethod
    def parse(cls, value: Any) -> "RolloutSource":
        """From a dict of named fields, or a list of them in the order of the attributes.

        Raises:
            ConfigError: unknown or too many fields, or values that do not go together.
        """
        if isinstance(value, RolloutSource):
            return value
        if isinstance(value, dict):
            check_entries(cls, value)
            named = value
        elif isinstance(value, list | tuple):
            names = [f.name for f in fields(cls)]
            if len(value) > len(names):
                raise ConfigError(
                    f"a rollout has at most {len(names)} entries ({', '.join(names)}), got {value}"
                )
            named = dict(zip(names, value, strict=False))
        else:
            raise ConfigError(f"a rollout is named fields or a list, got {value!r}")
        for name in ("agent_path", "rollout_path"):
            if named.get(name) is not None:
                named = {**named, name: str(named[name])}
        return cls(**named)


def parse_sources(values: Sequence[Any] | None) -> list[RolloutSource]:
    """All sources of a config.

    Raises:
        ConfigError: there are none, or one is wrong.
    """
    if not values:
        raise ConfigError(
            "no rollouts: give rollouts.rollouts=[...], or rollouts.random_rollouts for random "
            "actions"
        )
    return [RolloutSource.parse(value) for value in values]


def collect_mixture(
    sources: Sequence[RolloutSource],
    make_env: MakeEnv,
    steps: int | None,
    seed: np.random.SeedSequence,
    n_envs: int = 1,
    after: int = 0,
) -> list[Trajectory]:
    """Exactly `steps` steps from a mixture.

    Each source gives the whole number of steps at or above its share; together they are cut to
    `steps`. Whole episodes are taken, and the last one of each source is cut.

    Args:
        sources: at least one.
        make_env: builds an environment; not called for saved trajectories.
        steps: in all; None takes everything, from a single file of saved trajectories.
        seed: of everything that is random.
        n_envs: environments stepped side by side.
        after: `steps` of an earlier mixture of the same sources; what that took of saved
            trajectories is not taken again.

    Raises:
        ConfigError: `steps` missing where it is needed, or below 1.
        TrajectoryError: saved trajectories with too few steps.
    """
    if steps is None:
        if len(sources) != 1 or sources[0].rollout_path is None:
            raise ConfigError(
                "rollouts.steps may be left out only for a single file of saved trajectories"
            )
        return read_any_trajectories(sources[0].rollout_path)
    if type(steps) is not int or steps < 1:
        raise ConfigError(f"steps of rollouts must be a whole number of at least 1, got {steps!r}")
    total = sum(source.weight for source in sources)
    gathered: list[Trajectory] = []
    for source, child in zip(sources, seed.spawn(len(sources)), strict=True):
        share = _share(source, steps, total)
        found = collect(source, make_env, share, child, n_envs)
        what = f"rollout {source.name!r}"
        if source.rollout_path is not None and after > 0:
            used = _share(source, after, total)
            found = drop_steps(found, used)
            what += f", without the first {used} steps,"
        gathered += take_steps(found, share, what)
    return take_steps(gathered, steps, "the mixture")


def _share(source: RolloutSource, steps: int, total_weight: float) -> int:
    # Rounded first: 10 * (0.1 / (0.1 + 0.2 + 0.7)) is a little above 1.
    return math.ceil(round(steps * source.weight / total_weight, 9))


def collect(
    source: RolloutSource,
    make_env: MakeEnv,
    min_steps: int,
    seed: np.random.SeedSequence,
    n_envs: int = 1,
) -> list[Trajectory]:
    """At least `min_steps` steps of whole episodes from one source; all of a saved file.

    Raises:
        PolicyError: the policy cannot be read, or is for another environment.
        TrajectoryError: saved trajectories that cannot be read.
    """
    if source.rollout_path is not None:
        return read_any_trajectories(source.rollout_path)
    coin_seed, policy_seed, *env_seeds = seed.spawn(2 + n_envs)
    envs = [make_env() for _ in range(n_envs)]
    try:
        agent = None
        if source.agent_path is not None and source.random_prob < 1:
            observation_space, action_space = envs[0].observation_space, envs[0].action_space
            agent = load_agent(source.agent_path, observation_space, action_space, policy_seed)
        act = EpsilonPolicy(agent, envs[0].action_space, source.random_prob, coin_seed)
        return play_episodes(envs, act, min_steps, env_seeds)
    finally:
        for env in envs:
            env.close()


class EpsilonPolicy:
    """Acts by a policy's mode, or at random with some probability, per environment and step.

    Args:
        agent: the policy; None is random always.
        action_space: where random actions come from.
        random_prob: chance of a random action.
        seed: of the coins and of the random actions.
    """

    def __init__(
        self,
        agent: MlpPolicy | None,
        action_space: spaces.Space,
        random_prob: float,
        seed: np.random.SeedSequence,
    ) -> None:
        self._agent = agent
        self._random_prob = 1.0 if agent is None else random_prob
        coins, actions = seed.spawn(2)
        self._rng = np.random.default_rng(coins)
        self._space = action_space
        self._space.seed(int(actions.generate_state(1)[0]))

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Actions `(n, ...)` for the states of `n` environments."""
        tossed = self._rng.random(len(states)) < self._random_prob
        if self._agent is None:
            return np.stack([np.asarray(self._space.sample()) for _ in states])
        actions, _ = self._agent.predict(states, deterministic=True)
        for index in np.flatnonzero(tossed):
            actions[index] = self._space.sample()
        return actions


def play_episodes(
    envs: Sequence[gymnasium.Env],
    act: Callable[[np.ndarray], np.ndarray],
    min_steps: int,
    seeds: Sequence[np.random.SeedSequence],
) -> list[Trajectory]:
    """Play whole episodes until they hold `min_steps` steps.

    Episodes are returned in the order in which they began, each environment taking the next one as
    it finishes; those that began early enough to be needed are all finished, so that long
    episodes are not left out in favour of short ones.

    Args:
        envs: stepped side by side.
        act: from states `(n, ...)` to actions `(n, ...)`.
        min_steps: to reach.
        seeds: one per environment.

    Raises:
        TrajectoryError: an environment gives a reward that is not finite.
    """
    running = [_Episode() for _ in envs]
    begun = 0
    for env, seed, episode in zip(envs, seeds, running, strict=True):
        state, _ = env.reset(seed=int(seed.generate_state(1)[0]))
        episode.begin(begun, state)
        begun += 1
    finished: dict[int, Trajectory] = {}
    active = list(range(len(envs)))
    while active:
        actions = act(np.stack([running[i].states[-1] for i in active]))
        still = []
        for i, action in zip(active, actions, strict=True):
            state, reward, terminated, truncated, _ = envs[i].step(_native(action))
            running[i].add(action, state, reward)
            if not (terminated or truncated):
                still.append(i)
                continue
            finished[running[i].number] = running[i].trajectory(terminated)
            if sum(len(t) for t in finished.values()) < min_steps:
                state, _ = envs[i].reset()
                running[i].begin(begun, state)
                begun += 1
                still.append(i)
        active = still
    return [finished[number] for number in sorted(finished)]


def _native(action: np.ndarray) -> Any:
    """A number for a Discrete action space, an array for a Box."""
    return int(action) if np.ndim(action) == 0 else action


class _Episode:
    """An episode as it is played."""

    def begin(self, number: int, state: Any) -> None:
        self.number = number
        self.states, self.actions, self.rewards = [np.asarray(state)], [], []  # type: ignore[var-annotated]

    def add(self, action: np.ndarray, state: Any, reward: Any) -> None:
        self.actions.append(action)
        self.states.append(np.array(state))
        self.rewards.append(float(reward))

    def trajectory(self, terminated: bool) -> Trajectory:
        try:
            return Trajectory(
                np.stack(self.states), np.stack(self.actions), np.array(self.rewards), terminated
            )
        except TrajectoryError as error:
            raise TrajectoryError(f"episode {self.number}: {error}") from None
