"""Followers of MAL: the planner, and PPO that was pretrained over random leaders."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from aprl.configs.checks import require_at_least
from aprl.errors import PolicyError
from aprl.files import PathLike
from aprl.policies.network import MlpPolicy
from aprl.policies.store import load_saved, save_policy
from aprl.stackelberg.game import ModelLeader, StackelbergGame, model_from_context, model_queries
from aprl.stackelberg.mdp import FiniteMDP, Task
from aprl.stackelberg.planning import Plan, best_response
from aprl.stackelberg.random_leaders import RandomLeaders, context_observations, context_space
from aprl.stackelberg.sb3 import isolated_random_state, make_ppo
from aprl.training.learner import policy_of


class Oracle(Protocol):
    """A follower that answers a model, the leader's strategy, with a best response."""

    def best_response(self, model: FiniteMDP) -> np.ndarray:
        """A policy for `model`, as `aprl.stackelberg.planning` describes policies."""
        ...

    def respond(self, context: np.ndarray) -> np.ndarray:
        """The same from the answers of the leader; see `aprl.stackelberg.game.Follower`."""
        ...


class ExactOracle:
    """The planner as follower: `(H, S)` actions, optimal over the horizon.

    Args:
        task: needed to read contexts; models bring their own.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self._last: tuple[FiniteMDP, Plan] | None = None

    def plan(self, model: FiniteMDP) -> Plan:
        """The best response with its values; the last one is remembered."""
        if self._last is None or self._last[0] is not model:
            self._last = (model, best_response(model))
        return self._last[1]

    def best_response(self, model: FiniteMDP) -> np.ndarray:
        """See `Oracle.best_response`."""
        return self.plan(model).actions

    def respond(self, context: np.ndarray) -> np.ndarray:
        """See `Oracle.respond`."""
        return self.best_response(model_from_context(self.task, context))


@dataclass(frozen=True)
class PretrainConfig:
    """How the learned follower is trained; no real samples are used.

    Raises:
        ConfigError: a value out of range.
    """

    steps: int = 500_000  # in models that are drawn at random
    num_envs: int = 64  # models played at once
    # of SB3's PPO
    ppo: dict[str, Any] = field(
        default_factory=lambda: {
            "n_steps": 64,
            "batch_size": 512,
            "learning_rate": 1e-3,
            "gamma": 0.98,
            "policy_kwargs": {"net_arch": [64, 64]},
        }
    )

    def __post_init__(self) -> None:
        require_at_least("pretrain.steps", self.steps, 1)
        require_at_least("pretrain.num_envs", self.num_envs, 1)


class LearnedOracle:
    """A stationary policy that sees the leader's answers beside the state.

    Args:
        task: that it was trained for.
        policy: observes `context_space(task)`.

    Raises:
        PolicyError: a policy for other observations or actions.
    """

    def __init__(self, task: Task, policy: MlpPolicy) -> None:
        wanted = (context_space(task), spaces.Discrete(task.n_actions))
        if (policy.observation_space, policy.action_space) != wanted:
            raise PolicyError(
                f"a follower for {task.n_states} states and {task.n_actions} actions needs "
                f"{wanted[0]} and {wanted[1]}, got {policy.observation_space} and "
                f"{policy.action_space}"
            )
        self.task, self.policy = task, policy
        self._game = StackelbergGame(model_queries(task), self)

    def best_response(self, model: FiniteMDP) -> np.ndarray:
        """`(S,)` actions; see `Oracle.best_response`."""
        return self._game.play(ModelLeader(model))

    def respond(self, context: np.ndarray) -> np.ndarray:
        """`(S,)` actions; see `Oracle.respond`."""
        observations = context_observations(self.task, context)
        actions, _ = self.policy.predict(observations, deterministic=True)
        return actions.astype(np.int64)

    def save(self, directory: PathLike, provenance: dict[str, Any]) -> None:
        """Write it as a policy directory; see `aprl.policies.store`."""
        save_policy(self.policy, directory, provenance)

    @classmethod
    def load(cls, task: Task, directory: PathLike) -> "LearnedOracle":
        """Read what `save` wrote.

        Raises:
            PolicyError: missing, damaged, or made for another task.
        """
        policy = load_saved(directory)
        if not isinstance(policy, MlpPolicy):
            raise PolicyError(f"{directory} holds no MLP policy")
        return cls(task, policy)


def pretrain_oracle(
    task: Task, config: PretrainConfig, seed: np.random.SeedSequence
) -> LearnedOracle:
    """Train a follower over random leaders, so that it best-responds to any without learning on.

    Args:
        task: rewards, horizon and final states of the world; its transitions are not used.
        config: options.
        seed: of models, weights and actions.
    """
    leaders_seed, learner_seed = seed.spawn(2)
    with isolated_random_state():
        learner = make_ppo(
            RandomLeaders(task, config.num_envs, leaders_seed), learner_seed, config.ppo
        )
        learner.learn(config.steps)
        return LearnedOracle(task, policy_of(learner, None))
