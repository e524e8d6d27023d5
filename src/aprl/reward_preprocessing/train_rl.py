"""Train a policy: `python -m aprl.reward_preprocessing.train_rl with empty_maze_10 goal dense`.

`train_rl` is the function behind the command; it knows nothing of Sacred.
"""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import write_json
from aprl.policies.store import save_policy
from aprl.reward_preprocessing.configs import ENV_PART, RL_NAMED, RUNS_DIR, read_config
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.rl import MeanReturn, OnSteps, evaluate_policy, make_learner
from aprl.rewards import load_reward_net
from aprl.runs import CONFIG_FILE, FINAL_MODEL_DIR, STATUS_FILE, new_run_dir
from aprl.training.learner import ppo_arguments
from aprl.training.records import ProgressDisplay


@dataclass
class TrainRlConfig:
    """Options of `aprl.reward_preprocessing.train_rl`."""

    root_dir: str = RUNS_DIR  # run directories are made in here
    exp_name: str = "rl"  # ends the run directory's name
    env: EnvConfig = field(default_factory=EnvConfig)
    reward_path: str | None = None  # reward net that pays; None: the environment does
    num_env: int = 8  # environments stepped side by side
    total_timesteps: int = 100_000  # environment steps
    batch_size: int = 2048  # environment steps per update, over all environments
    learning_rate: float = 3e-4  # constant
    rl_args: dict[str, Any] = field(default_factory=dict)  # of PPO; see `aprl.train`
    normalize: bool = True  # running normalisation of vector observations, and of rewards
    eval_episodes: int = 20  # whole episodes on the environment's own reward; 0: none
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work, before anything is built.

        Raises:
            ConfigError: a wrong value.
        """
        self.env.check()
        for name in ("num_env", "total_timesteps", "batch_size"):
            require_at_least(name, getattr(self, name), 1)
        for name in ("eval_episodes", "seed"):
            require_at_least(name, getattr(self, name), 0)
        if not 0 < self.learning_rate < 1:
            raise ConfigError(f"learning_rate must be in (0, 1), got {self.learning_rate}")
        ppo_arguments(self.rl_args, self.batch_size, self.num_env)


@dataclass(frozen=True)
class TrainRlResult:
    """What a run left behind.

    Attributes:
        run_dir: the run directory.
        policy_dir: the policy.
        evaluation: its return on the environment's own reward; None if not asked for.
    """

    run_dir: Path
    policy_dir: Path
    evaluation: MeanReturn | None


def train_rl(config: TrainRlConfig) -> TrainRlResult:
    """Train PPO on an environment's reward, or on a reward net in its place.

    Args:
        config: see `TrainRlConfig`.

    Raises:
        AprlError: bad input, before a run directory is made.
    """
    config.check()
    env = config.env.make()
    net = None
    if config.reward_path is not None:
        net = load_reward_net(config.reward_path)
        net.require_fit(env.observation_space, env.action_space, config.reward_path)
    env.close()
    learner_seed, eval_seed = np.random.SeedSequence(config.seed).spawn(2)
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
    write_json(run_dir / STATUS_FILE, {"status": "running", "num_timesteps": 0})
    display = ProgressDisplay(config.total_timesteps, enabled=config.progress)
    status = "failed"
    try:
        learner.ppo.learn(config.total_timesteps, callback=OnSteps(display.update))
        status = "completed"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        display.close()
        steps = learner.ppo.num_timesteps
        write_json(run_dir / STATUS_FILE, {"status": status, "num_timesteps": steps})
    policy = learner.policy()
    provenance = {"env_name": config.env.env_id, "seed": config.seed, "steps": steps}
    policy_dir = save_policy(policy, run_dir / FINAL_MODEL_DIR, provenance)
    evaluation = None
    if config.eval_episodes:
        evaluation = evaluate_policy(policy, config.env.make, config.eval_episodes, eval_seed)
        write_json(run_dir / "evaluation.json", asdict(evaluation))
    return TrainRlResult(run_dir, policy_dir, evaluation)


train_rl_experiment = CommandExperiment(
    "train_rl",
    TrainRlConfig,
    RL_NAMED,
    parts={"env": ENV_PART},
)


@train_rl_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Train as configured; `print_config` shows every option."""
    with user_errors():
        result = train_rl(read_config(TrainRlConfig, as_plain(_config)))
        console = output()
        if result.evaluation is not None:
            console.print(f"return: {result.evaluation}")
        console.print(f"policy: {result.policy_dir}", soft_wrap=True)
        return str(result.policy_dir)


def main() -> None:
    """Command line."""
    command_line(train_rl_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
