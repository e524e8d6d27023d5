"""The transitions that a reward is preprocessed and judged on."""

from collections.abc import Callable
from dataclasses import dataclass

import gymnasium
import numpy as np

from aprl.errors import ConfigError
from aprl.reward_preprocessing.configs import RolloutsConfig
from aprl.reward_preprocessing.envs import tabular_mdp
from aprl.reward_preprocessing.mdp import TabularMDP
from aprl.reward_preprocessing.rollouts import collect_mixture, parse_sources
from aprl.reward_preprocessing.transitions import Transitions


@dataclass(frozen=True)
class Data:
    """What the objectives average over.

    Attributes:
        train: transitions to preprocess on.
        test: further transitions; None if not asked for.
        mdp: exact dynamics, where the environment has numbered states.
    """

    train: Transitions
    test: Transitions | None
    mdp: TabularMDP | None


def gather_data(
    env: gymnasium.Env,
    make_env: Callable[[], gymnasium.Env],
    config: RolloutsConfig,
    n_envs: int,
    seed: int,
) -> Data:
    """All transitions of a finite environment, or those of rollouts where some are asked for.

    Train and test have no steps in common: rollouts have seeds of their own, and of saved
    trajectories the test takes what comes after.

    Raises:
        ConfigError: the environment is not finite and no rollouts are given, all of a file is
            taken for training although a test is asked for, or saved rollouts are of another
            environment.
        TrajectoryError: saved rollouts with too few steps.
    """
    mdp = tabular_mdp(env)
    if mdp is not None and not config.rollouts:
        return Data(mdp.table, None, mdp)
    sources = parse_sources(config.rollouts)
    if config.steps is None and config.test_steps is not None:
        raise ConfigError("rollouts.test_steps needs rollouts.steps: without, all is for training")
    train_seed, test_seed = np.random.SeedSequence(seed).spawn(2)

    def transitions(
        steps: int | None, child: np.random.SeedSequence, after: int = 0
    ) -> Transitions:
        trajectories = collect_mixture(sources, make_env, steps, child, n_envs, after)
        result = Transitions.from_trajectories(trajectories)
        _require_states(result, env)
        return result

    train = transitions(config.steps, train_seed)
    test = None
    if config.test_steps is not None:
        test = transitions(config.test_steps, test_seed, after=config.steps or 0)
    return Data(train, test, mdp)


def _require_states(transitions: Transitions, env: gymnasium.Env) -> None:
    space = env.observation_space
    if transitions.states.shape[1:] != space.shape:
        raise ConfigError(
            f"the rollouts are of another environment: their states have shape "
            f"{transitions.states.shape[1:]}, the environment's {space.shape}"
        )
    if isinstance(space, gymnasium.spaces.Discrete):
        largest = max(transitions.states.max(), transitions.next_states.max())
        if largest >= space.n:
            raise ConfigError(
                f"the rollouts are of another environment: they visit state {largest}, the "
                f"environment has {space.n} states"
            )
