"""UCBVI (Azar et al., 2017) and PSRL (Osband et al., 2013): episodic, with regret bounds."""

import math
from dataclasses import dataclass

import numpy as np

from aprl.configs.checks import require_within
from aprl.errors import unknown_name
from aprl.stackelberg.envs import CountedEnv
from aprl.stackelberg.model import TransitionCounts, uniform_rows
from aprl.stackelberg.planning import backward_induction, best_response
from aprl.stackelberg.runner import Report

DEPLOYED = ("played", "mean")


@dataclass(frozen=True)
class RegretConfig:
    """Options of both; each ignores what is the other's.

    Raises:
        ConfigError: a value out of range.
    """

    bonus_scale: float = 7.0  # UCBVI: of horizon * reward range * log term / sqrt(visits)
    delta: float = 0.1  # UCBVI: failure probability of its bound
    prior: float = 1.0  # PSRL: pseudo-count of every transition
    deployed: str = "played"  # policy that is judged: the one played, or the mean model's best

    def __post_init__(self) -> None:
        if self.deployed not in DEPLOYED:
            raise unknown_name("deployed policy", str(self.deployed), DEPLOYED)
        require_within("delta", self.delta, 0, 1, open_low=True, open_high=True)
        require_within("bonus_scale", self.bonus_scale, 0, math.inf, open_high=True)
        require_within("prior", self.prior, 0, math.inf, open_low=True, open_high=True)


class _EpisodicLearner:
    """Plans before each episode, from all samples so far."""

    def __init__(self, config: RegretConfig) -> None:
        self.config = config

    def plan(self, counts: TransitionCounts, samples: int, rng: np.random.Generator) -> np.ndarray:
        """`(H, S)` actions of the next episode."""
        raise NotImplementedError

    def learn(self, env: CountedEnv, seed: np.random.SeedSequence, report: Report) -> None:
        """See `Method.learn`; a policy is reported before each episode."""
        rng = np.random.default_rng(seed)
        counts = TransitionCounts(env.task)
        while True:
            policy = self.plan(counts, env.samples, rng)
            if self.config.deployed == "mean":
                report(best_response(counts.mean_model(uniform_rows(env.task))).actions)
            else:
                report(policy)
            state, _ = env.reset()
            step, done = 0, False
            while not done:
                pair = state * env.task.n_actions + int(policy[step, state])
                state, _, terminated, truncated, _ = env.step(int(policy[step, state]))
                counts.add(pair, state)
                step, done = step + 1, terminated or truncated


class UCBVI(_EpisodicLearner):
    """Optimism with the Hoeffding bonus, 7 H L / sqrt(n), L = log(5 S A T / delta).

    Rewards are known; their range scales the bonus. T is the number of samples so far, at least
    one episode, since the length of the run is not the learner's to know.
    """

    def plan(self, counts: TransitionCounts, samples: int, rng: np.random.Generator) -> np.ndarray:
        """See `_EpisodicLearner.plan`."""
        task, config = counts.task, self.config
        least, greatest = task.reward_bounds
        steps = max(samples, task.horizon)
        log_term = math.log(5 * task.n_pairs * steps / config.delta)
        bound = greatest * np.arange(task.horizon + 1)
        visits = np.maximum(counts.visits, 1)
        scale = config.bonus_scale * task.horizon * (greatest - least) * log_term
        bonus = np.where(counts.unseen, bound[-1], scale / np.sqrt(visits))
        bonus[task.final_pairs] = 0.0
        model = counts.mean_model(uniform_rows(task))
        rewards = model.expected_rewards + bonus
        return backward_induction(model.transitions, rewards, task.horizon, bound).actions


class PSRL(_EpisodicLearner):
    """Plays, for an episode, the optimum of a model drawn from the Dirichlet posterior."""

    def plan(self, counts: TransitionCounts, samples: int, rng: np.random.Generator) -> np.ndarray:
        """See `_EpisodicLearner.plan`."""
        return best_response(counts.posterior_draw(self.config.prior, rng)).actions
