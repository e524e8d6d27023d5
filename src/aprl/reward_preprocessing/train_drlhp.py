"""Learn a reward from preferences: `python -m aprl.reward_preprocessing.train_drlhp with ...`.

`train_drlhp` is the function behind the command; it knows nothing of Sacred.
"""

import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError, unknown_name
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import write_json
from aprl.policies.store import save_policy
from aprl.reward_preprocessing.agents import load_agent
from aprl.reward_preprocessing.configs import DRLHP_NAMED, ENV_PART, RUNS_DIR, read_config
from aprl.reward_preprocessing.drlhp import DrlhpOptions, IterationReport, learn_from_preferences
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.rl import make_learner
from aprl.reward_preprocessing.trainable_potentials import make_potential
from aprl.rewards import (
    MlpRewardNet,
    RewardEnsemble,
    RewardNet,
    ShapedRewardNet,
    TabularRewardNet,
    require_gamma,
    save_reward_net,
)
from aprl.rewards.potentials import CriticPotential
from aprl.runs import CONFIG_FILE, FINAL_MODEL_DIR, new_run_dir
from aprl.training.learner import ppo_arguments
from aprl.training.records import ProgressDisplay

REWARD_TYPES = ("tabular", "mlp")


@dataclass
class TrainDrlhpConfig:
    """Options of `aprl.reward_preprocessing.train_drlhp`."""

    root_dir: str = RUNS_DIR  # run directories are made in here
    exp_name: str = "drlhp"  # ends the run directory's name
    save_path: str | None = None  # also write the reward net here, such as results/learned.pt
    env: EnvConfig = field(default_factory=EnvConfig)

    reward_type: str = "mlp"  # or "tabular", of state and next state
    reward_args: dict[str, Any] = field(default_factory=dict)  # inputs; hidden_sizes of an MLP
    shaped: bool = False  # learn a potential beside the reward, which shapes it
    ensemble_size: int = 1  # members of the reward, averaged

    fragment_length: int = 50  # steps of a fragment
    total_comparisons: int = 1000  # asked of the oracle in all
    comparisons_per_iteration: int = 100
    random_frac: float = 0.5  # chance of a random action in the episodes that are compared
    transition_oversampling: float = 2.0  # steps played per step compared
    temperature: float = 1.0  # of the oracle, in units of return; 0: always right
    preference_agent: str | None = None  # policy whose critic shapes what the oracle prefers
    gamma: float = 0.99  # discount of returns
    reward_epochs: int = 10  # passes over all comparisons in each iteration
    reward_batch_size: int = 64  # comparisons per step
    reward_lr: float = 1e-2  # Adam's learning rate

    total_timesteps: int = 100_000  # environment steps of the policy, over all iterations
    num_env: int = 8  # environments stepped side by side
    batch_size: int = 2048  # environment steps per update of the policy
    learning_rate: float = 3e-4  # of the policy
    rl_args: dict[str, Any] = field(default_factory=dict)  # of PPO; see `aprl.train`
    normalize: bool = True  # running normalisation of vector observations, and of rewards
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> DrlhpOptions:
        """Refuse what cannot work, before anything is built; return what the loop needs.

        Raises:
            ConfigError: a wrong value.
        """
        self.env.check()
        require_gamma(self.gamma)
        if self.reward_type not in REWARD_TYPES:
            raise unknown_name("reward_type", self.reward_type, REWARD_TYPES)
        for name in ("num_env", "batch_size", "ensemble_size"):
            require_at_least(name, getattr(self, name), 1)
        require_at_least("seed", self.seed, 0)
        if not 0 < self.learning_rate < 1:
            raise ConfigError(f"learning_rate must be in (0, 1), got {self.learning_rate}")
        ppo_arguments(self.rl_args, self.batch_size, self.num_env)
        names = DrlhpOptions.__dataclass_fields__
        return DrlhpOptions(**{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class TrainDrlhpResult:
    """What a run left behind.

    Attributes:
        run_dir: the run directory.
        reward_path: the learned reward, in the run directory.
        policy_dir: the policy trained on it.
        reports: one per iteration.
    """

    run_dir: Path
    reward_path: Path
    policy_dir: Path
    reports: list[IterationReport]


def make_reward_net(config: TrainDrlhpConfig, env: gymnasium.Env) -> RewardNet:
    """An untrained reward net as configured.

    Raises:
        ConfigError: arguments or a kind of net that do not fit the environment.
    """
    spaces = (env.observation_space, env.action_space)

    def member(index: int) -> RewardNet:
        seed = config.seed + index
        try:
            net: RewardNet
            if config.reward_type == "tabular":
                net = TabularRewardNet(*spaces, **config.reward_args)
            else:
                net = MlpRewardNet(*spaces, **config.reward_args, seed=seed)
        except TypeError as error:
            raise ConfigError(f"reward_args {config.reward_args}: {error}") from None
        if not config.shaped:
            return net
        kind = "tabular" if config.reward_type == "tabular" else "mlp"
        return ShapedRewardNet(net, make_potential(kind, spaces[0], seed=seed), config.gamma)

    members = [member(index) for index in range(config.ensemble_size)]
    return members[0] if len(members) == 1 else RewardEnsemble(members)


def train_drlhp(config: TrainDrlhpConfig) -> TrainDrlhpResult:
    """Learn a reward from an oracle's comparisons, and a policy on it, in turns.

    Args:
        config: see `TrainDrlhpConfig`.

    Raises:
        AprlError: bad input, before a run directory is made.
    """
    options = config.check()
    env = config.env.make()
    net = make_reward_net(config, env)
    potential = None
    if config.preference_agent is not None:
        potential = CriticPotential(load_agent(config.preference_agent, env.observation_space))
        potential.set_coefficients(np.array([1.0, 0.0]))  # the critic's value as it is
    env.close()
    learner_seed, loop_seed = np.random.SeedSequence(config.seed).spawn(2)
    learner = make_learner(
        config.env.make,
        n_envs=config.num_env,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        rl_args=config.rl_args,
        normalize=config.normalize,
        seed=learner_seed,
        reward_net=net,
    )
    run_dir = new_run_dir(config.root_dir, config.exp_name)
    write_json(run_dir / CONFIG_FILE, asdict(config))
    display = ProgressDisplay(
        math.ceil(options.total_comparisons / options.comparisons_per_iteration),
        enabled=config.progress,
        verb="learning from preferences",
        unit="iterations",
    )

    def report(r: IterationReport) -> None:
        text = f"loss {r.loss:.3f}, agrees {100 * r.accuracy:.0f} %, return {r.mean_return:.2f}"
        display.update(r.iteration + 1, text)

    try:
        reports = learn_from_preferences(
            net, learner, config.env.make, options, loop_seed, potential, report
        )
    finally:
        display.close()
    provenance = {
        "env_name": config.env.env_id,
        "seed": config.seed,
        "comparisons": config.total_comparisons,
    }
    reward_path = save_reward_net(net, run_dir / "reward_net.pt", provenance)
    if config.save_path is not None:
        save_reward_net(net, config.save_path, provenance)
    policy_dir = save_policy(learner.policy(), run_dir / FINAL_MODEL_DIR, provenance)
    write_json(run_dir / "iterations.json", [r.to_json() for r in reports])
    return TrainDrlhpResult(run_dir, reward_path, policy_dir, reports)


train_drlhp_experiment = CommandExperiment(
    "train_drlhp",
    TrainDrlhpConfig,
    DRLHP_NAMED,
    parts={"env": ENV_PART},
)


@train_drlhp_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Learn as configured; `print_config` shows every option."""
    with user_errors():
        result = train_drlhp(read_config(TrainDrlhpConfig, as_plain(_config)))
        console, last = output(), result.reports[-1]
        agrees = f"agrees with {100 * last.accuracy:.1f} % of {last.comparisons:,} comparisons"
        console.print(f"reward: {result.reward_path} ({agrees})", soft_wrap=True)
        console.print(f"policy: {result.policy_dir}", soft_wrap=True)
        return str(result.reward_path)


def main() -> None:
    """Command line."""
    command_line(train_drlhp_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
