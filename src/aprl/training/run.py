"""One training run: build it from a config, learn, checkpoint, stop cleanly, resume exactly."""

from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from aprl.envs import VecMultiEnv, make_vec
from aprl.errors import RunError
from aprl.files import PathLike
from aprl.policies.network import MlpPolicy
from aprl.policies.store import save_policy
from aprl.runs import FINAL_MODEL_DIR, PROGRESS_FILE, STATUS_FILE, TENSORBOARD_DIR
from aprl.stats import WinRate
from aprl.training.checkpoints import CheckpointError, load_state, save_state
from aprl.training.config import TrainConfig
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, GameOutcomeMonitor
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.normalize import VecNormalize
from aprl.training.records import CsvLog, ProgressDisplay
from aprl.training.run_directory import (
    RunDirectory,
    new_run_dir,
    read_run_config,
    require_same_config,
)
from aprl.training.shaping import RewardShapingVecWrapper, annealer_from_params
from aprl.training.snapshot import capture, global_random_state, restore, set_global_random_state
from aprl.training.stopping import Interrupted
from aprl.training.used_policies import (
    check_against_game,
    fingerprints,
    require_unchanged,
    used_policies,
)

__all__ = ["Interrupted", "TrainingRun", "new_run_dir", "resume_run", "start_run"]


class TrainingRun:
    """A run in its directory, ready to learn.

    Args:
        config: resolved (`TrainConfig.resolve`).
        directory: of the run.
        checkpoint: to continue from there; None starts at step 0.

    Attributes:
        outcomes: win rate of the learner over the games of the last rollout.

    Raises:
        CheckpointError: the checkpoint is damaged or of another kind of run.
    """

    def __init__(
        self, config: TrainConfig, directory: RunDirectory, checkpoint: Path | None = None
    ) -> None:
        state = None if checkpoint is None else load_state(checkpoint)
        self.config = config
        self.directory = directory
        self._build()
        self.outcomes = WinRate(0, 0)
        self._snapshot: dict[str, Any] = {}
        self._snapshot_policy: MlpPolicy | None = None
        # PyTorch's and NumPy's global generators, which SB3 draws from, as this run needs them.
        self._random_state = global_random_state()
        if state is not None:
            assert checkpoint is not None
            require_same_config(state.get("config"), config, self.run_dir)
            restore(self, state, checkpoint)
            self._random_state = state["random_state"]
        self.learner.set_logger(
            Logger(
                str(self.run_dir / "rl"),
                [
                    CsvLog(self.run_dir / PROGRESS_FILE, until=self.learner.num_timesteps),
                    TensorBoardOutputFormat(str(self.run_dir / TENSORBOARD_DIR)),
                ],
            )
        )
        for name, value in (state or {}).get("pending_log", {}).items():
            self.learner.logger.record(name, value)

    @property
    def run_dir(self) -> Path:
        """Path of the run directory."""
        return self.directory.path

    def _build(self) -> None:
        config = self.config
        env_seed, embed_seed, learner_seed = np.random.SeedSequence(config.seed).spawn(3)
        game = make_vec(config.env_name, config.num_env, env_seed, **config.env_options())
        self.monitor = GameOutcomeMonitor(game)
        venv: VecMultiEnv = self.monitor
        used = used_policies(config)
        for policy in (u.load(config, embed_seed) for u in used if u.role == "embedded"):
            venv = CurryVecEnv(
                venv, policy, config.resolved_embed_index, config.embed_deterministic
            )
        flat = FlattenSingletonVecEnv(venv, config.agent_idx)
        self.game = venv
        self.shaping: RewardShapingVecWrapper | None = None
        if config.rew_shape:
            self.shaping = RewardShapingVecWrapper(
                flat,
                config.rew_shape_params["weights"],
                annealer_from_params(config.rew_shape_params),
                self.progress,
            )
        arguments = ppo_arguments(config.rl_args, config.batch_size, config.num_env)
        inner = self.shaping or flat
        self.normaliser: VecNormalize | None = None
        if config.normalize:
            self.normaliser = VecNormalize(
                inner,
                norm_obs=config.normalize_observations,
                norm_reward=True,
                gamma=arguments.get("gamma", 0.99),
            )
        start: MlpPolicy | None = None
        for policy in (u.load(config) for u in used if u.role == "loaded"):
            assert isinstance(policy, MlpPolicy)
            start = policy
        self.learner = make_ppo(
            self.normaliser or inner,
            arguments,
            config.learning_rate,
            int(learner_seed.generate_state(1)[0]),
            start,
        )

    def progress(self) -> float:
        """Fraction of the whole run that is done, in [0, 1]."""
        return min(1.0, self.learner.num_timesteps / self.config.total_timesteps)

    def train(self) -> Path:
        """Learn until `total_timesteps`; returns the directory of the final policy.

        Raises:
            Interrupted: by SIGINT or SIGTERM, after saving a checkpoint.
            RunError: an output could not be written, and the last checkpoint is intact; or another
                process is at work in the directory.
        """
        with self.directory.at_work():
            return self._train()

    def _train(self) -> Path:
        config, learner = self.config, self.learner
        set_global_random_state(self._random_state)
        display = ProgressDisplay(
            config.total_timesteps, learner.num_timesteps, enabled=config.progress
        )
        try:
            learner.learn(
                config.total_timesteps - learner.num_timesteps,
                callback=_RunCallback(self, display),
                reset_num_timesteps=learner.num_timesteps == 0,
            )
        finally:
            display.close()
        if self.stopping and learner.num_timesteps < config.total_timesteps:
            self.save_checkpoint()
            self.directory.stop_if_asked()
        final = self.save_policy(self.run_dir / FINAL_MODEL_DIR)
        self.directory.steps = learner.num_timesteps
        self.directory.write_status("running")  # the evaluation may follow
        return final

    @property
    def stopping(self) -> bool:
        """Whether a signal asked the run to stop."""
        return self.directory.signals.signum is not None

    def policy(self) -> MlpPolicy:
        """The present policy, complete with its normaliser; it does not learn on."""
        return policy_of(self.learner, self.normaliser)

    def save_policy(self, directory: Path) -> Path:
        """Write the present policy with its provenance."""
        return self._save_policy(self.policy(), directory, self.learner.num_timesteps)

    def _save_policy(self, policy: MlpPolicy, directory: Path, steps: int) -> Path:
        config = self.config
        parents = [
            {"role": role, "path": path}
            for role, path in [
                *(("embedded", p) for p in config.embed_paths or []),
                ("loaded", config.load_policy["path"]),
            ]
            if path is not None
        ]
        return save_policy(
            policy,
            directory,
            {
                "env_name": config.env_name,
                "agent_index": config.agent_idx,
                "seed": config.seed,
                "steps": steps,
                "wall_time_s": round(self.directory.wall_time_s, 1),
                "run": self.run_dir.name,
                "parents": parents,
            },
        )

    def take_snapshot(self) -> None:
        """Remember the present state and policy, for a stop in the middle of a rollout."""
        self._snapshot, self._snapshot_policy = capture(self), self.policy()

    def save_checkpoint(self) -> None:
        """Write the last snapshot: complete state, and the policy that belongs to it."""
        assert self._snapshot_policy is not None
        steps = self._snapshot["num_timesteps"]
        checkpoint = self.directory.checkpoint(steps)
        save_state(checkpoint, self._snapshot)
        self._save_policy(self._snapshot_policy, checkpoint / "policy", steps)
        self.directory.steps = steps
        self.directory.write_status("running")
        self.directory.prune_checkpoints(self.config.keep_checkpoints)


class _RunCallback(BaseCallback):
    """Ties the algorithm's loop to the run: snapshots, checkpoints, logs, progress, stopping."""

    def __init__(self, run: TrainingRun, display: ProgressDisplay) -> None:
        super().__init__()
        self._run = run
        self._display = display

    def _on_rollout_start(self) -> None:
        run = self._run
        run.take_snapshot()
        if self.num_timesteps - run.directory.steps >= run.config.checkpoint_interval:
            run.save_checkpoint()

    def _on_step(self) -> bool:
        self._display.update(self.num_timesteps)
        return not self._run.stopping

    def _on_rollout_end(self) -> None:
        run = self._run
        for name, value in run.monitor.log_values().items():
            self.logger.record(name, value)
        run.outcomes = WinRate(run.monitor.wins[run.config.agent_idx], run.monitor.games)
        run.monitor.clear()
        if run.shaping is not None:
            for name, value in run.shaping.log_values().items():
                self.logger.record(name, value)
            run.shaping.clear()
        status = f"wins {100 * run.outcomes.rate:.1f} % of {run.outcomes.games} games"
        self._display.update(self.num_timesteps, status)


def start_run(config: TrainConfig) -> TrainingRun:
    """Check the config and its policies, make the run directory, build the run.

    Args:
        config: as given by the user, not yet resolved.

    Raises:
        AprlError: something in the config cannot work; no environment was built, nothing written.
    """
    config = config.resolve()
    check_against_game(config)
    directory = RunDirectory.create(config, fingerprints(config))
    try:
        return TrainingRun(config, directory)
    except BaseException:  # what cannot even start leaves no run behind
        directory.remove()
        raise


def resume_run(run_dir: PathLike, progress: bool | None = None) -> TrainingRun:
    """Rebuild a run from its newest usable checkpoint, or from the start if it has made none.

    Other processes are kept out of the directory from here until the end of `train`.

    Args:
        run_dir: of the run.
        progress: show progress on the terminal; None does as the run's config says.

    Raises:
        RunError: no such run, it is complete, it has no usable checkpoint, another process is at
            work on it, or its config or a policy that it uses has changed.
    """
    config, recorded = read_run_config(run_dir)
    if progress is not None:
        config.progress = progress
    directory = RunDirectory(Path(run_dir))
    directory.acquire()
    try:
        if (directory.path / FINAL_MODEL_DIR).exists():
            raise RunError(f"{run_dir} is complete; there is nothing to resume")
        require_unchanged(config, recorded, directory.path)
        check_against_game(config)
        return _rebuild(config, directory)
    except BaseException:
        directory.release()
        raise


def _rebuild(config: TrainConfig, directory: RunDirectory) -> TrainingRun:
    checkpoints = directory.checkpoints()
    if not checkpoints and (directory.path / STATUS_FILE).exists():
        return TrainingRun(config, directory)  # it was stopped before its first checkpoint
    reasons = []
    for checkpoint in checkpoints:
        try:
            return TrainingRun(config, directory, checkpoint)
        except CheckpointError as error:
            reasons.append(str(error))
    raise RunError(
        f"{directory.path} has no usable checkpoint to resume from {'; '.join(reasons)}".strip()
    )
