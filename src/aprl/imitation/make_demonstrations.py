"""Record an expert: `python -m aprl.imitation.make_demonstrations with env_name=... out=...`.

The expert is a saved policy, or one that is trained first with PPO. Games are recorded with
`python -m aprl.score_agent with record=...` instead.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.errors import ConfigError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import require_writable_directory
from aprl.imitation.demonstrations import Demonstrations, save_demonstrations
from aprl.imitation.environments import GymVecEnv, check_gym_id
from aprl.imitation.rollouts import collect_trajectories
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy
from aprl.policies.store import save_policy
from aprl.stats import MeanEstimate
from aprl.training.incremental import incremental
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.learning_rate import learning_rate
from aprl.training.normalize import VecNormalize
from aprl.training.random_state import PrivateRandomState
from aprl.training.records import ProgressDisplay


@dataclass
class DemonstrationConfig:
    """Options of `aprl.imitation.make_demonstrations`."""

    root_dir: str = "data/demonstrations"  # records of the experiment go to `sacred/` in here
    out: str | None = None  # .npz to write; None: <root_dir>/<env_name>.npz
    env_name: str = "CartPole-v1"  # Gymnasium id
    env_options: dict[str, Any] = field(default_factory=dict)  # of the environment's constructor
    horizon: int | None = None  # steps of every recorded episode; None: as the id says
    episodes: int = 10  # to record
    deterministic: bool = False  # the expert plays its mode instead of sampling
    num_env: int = 8  # environments in the batch

    expert_type: str = "ppo"  # see aprl.train's policy types
    expert_path: str | None = None  # its directory; None: train one, saved beside the .npz
    train_timesteps: int = 65_536  # of the training; its episodes end as the id says
    batch_size: int = 4096  # environment steps per update
    learning_rate: float = 1e-3  # at the start; it falls to 0
    rl_args: dict[str, Any] = field(
        default_factory=lambda: {"n_epochs": 10, "nminibatches": 16, "gae_lambda": 0.98}
    )
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> "DemonstrationConfig":
        """A copy with values of the declared types.

        Raises:
            ConfigError: anything that cannot work; no environment has been built yet.
        """
        config = with_types(self)
        check_gym_id(config.env_name)
        for name in ("episodes", "num_env", "train_timesteps", "batch_size"):
            require_at_least(name, getattr(config, name), 1)
        require_at_least("seed", config.seed, 0)
        if config.horizon is not None:
            require_at_least("horizon", config.horizon, 1)
        if config.out_path.suffix != ".npz":
            raise ConfigError(f"out must name an .npz file, got {config.out}")
        if not 0 < config.learning_rate < 1:
            raise ConfigError(f"learning_rate must be in (0, 1), got {config.learning_rate}")
        ppo_arguments(config.rl_args, config.batch_size, config.num_env)
        return config

    @property
    def out_path(self) -> Path:
        """Where the demonstrations are written."""
        if self.out is not None:
            return Path(self.out)
        return Path(self.root_dir) / f"{self.env_name.replace('/', '_')}.npz"


def make_demonstrations(
    config: DemonstrationConfig, on_progress: Callable[[int], None] | None = None
) -> tuple[Path, MeanEstimate]:
    """Record an expert, after training it if there is none.

    Args:
        config: checked here.
        on_progress: told the number of training steps made.

    Returns:
        The file, and the expert's mean return per recorded episode.

    Raises:
        AprlError: bad input.
    """
    config = config.check()
    require_writable_directory(config.out_path.parent)
    train_seed, env_seed, play_seed = np.random.SeedSequence(config.seed).spawn(3)
    venv = GymVecEnv(
        config.env_name,
        min(config.num_env, config.episodes),
        env_seed,
        config.horizon,
        **config.env_options,
    )
    if config.expert_path is None and config.expert_type == "ppo":
        expert, name = _train(config, train_seed, on_progress)
    else:
        name = str(config.expert_path)
        expert = load_policy(
            config.expert_type,
            config.expert_path,
            observation_space=venv.observation_space,
            action_space=venv.action_space,
            env_name=config.env_name,
            index=0,
        )
    expert.seed(play_seed)
    trajectories = collect_trajectories(venv, expert, config.episodes, config.deterministic)
    demonstrations = Demonstrations(
        tuple(trajectories),
        venv.observation_space,
        venv.action_space,
        {
            "env_name": config.env_name,
            "horizon": config.horizon,
            "policy": {"type": config.expert_type, "path": name},
            "seed": config.seed,
        },
    )
    path = save_demonstrations(demonstrations, config.out_path)
    return path, MeanEstimate.of([t.total_reward for t in trajectories])


def _train(
    config: DemonstrationConfig,
    seed: np.random.SeedSequence,
    on_progress: Callable[[int], None] | None,
) -> tuple[Policy, str]:
    env_seed, global_seed = seed.spawn(2)
    arguments = ppo_arguments(config.rl_args, config.batch_size, config.num_env)
    venv = VecNormalize(
        GymVecEnv(config.env_name, config.num_env, env_seed, **config.env_options),
        norm_obs=True,
        norm_reward=True,
        gamma=arguments.get("gamma", 0.99),
    )
    with PrivateRandomState(global_seed).lent():
        learner = make_ppo(
            venv,
            arguments,
            learning_rate(config.learning_rate, "linear"),
            int(global_seed.generate_state(1)[0]),
        )
        with incremental(learner, config.train_timesteps, log_interval=None) as session:
            while session.step(config.batch_size):
                if on_progress is not None:
                    on_progress(learner.num_timesteps)
    policy = policy_of(learner, venv)
    directory = config.out_path.with_suffix(".expert")
    save_policy(policy, directory, {"env_name": config.env_name, "seed": config.seed})
    venv.close()
    return policy, str(directory)


demonstrations_experiment = CommandExperiment(
    "demonstrations",
    DemonstrationConfig,
    {
        "cartpole": {"env_name": "CartPole-v1", "horizon": 500, "train_timesteps": 204_800},
        "swimmer": {
            "env_name": "Swimmer-v5",
            "train_timesteps": 600_000,
            "learning_rate": 6e-4,
            "rl_args": {
                "n_epochs": 10,
                "nminibatches": 16,
                "gamma": 0.9999,
                "gae_lambda": 0.98,
            },
        },
    },
)


@demonstrations_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Record as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        check_entries(DemonstrationConfig, values)
        config = DemonstrationConfig(**values)
        enabled = config.progress and config.expert_path is None
        display = ProgressDisplay(config.train_timesteps, enabled=enabled, verb="expert")
        try:
            path, returns = make_demonstrations(config, display.update)
        finally:
            display.close()
        output().print(f"{path}: mean return {returns}", soft_wrap=True)
        return str(path)


def main() -> None:
    """Command line."""
    command_line(demonstrations_experiment, default_root="data/demonstrations", argv=sys.argv)


if __name__ == "__main__":
    main()
