"""One training run: build it from a config, learn, checkpoint, stop cleanly, resume exactly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from aprl.errors import RunError
from aprl.files import PathLike
from aprl.policies.network import NetworkPolicy
from aprl.policies.store import save_policy
from aprl.runs import FINAL_MODEL_DIR, PROGRESS_FILE, STATUS_FILE, TENSORBOARD_DIR
from aprl.stats import WinRate
from aprl.training.algorithms import ALGORITHMS
from aprl.training.checkpoints import CheckpointError, load_state, save_state
from aprl.training.config import TrainConfig
from aprl.training.incremental import fit
from aprl.training.learning_rate import learning_rate
from aprl.training.random_state import global_random_state, set_global_random_state
from aprl.training.records import CsvLog, ProgressDisplay
from aprl.training.run_directory import RunDirectory, read_run_config, require_same_config
from aprl.training.snapshot import capture, restore
from aprl.training.stack import RunSeeds, Stack
from aprl.training.used_policies import (
    check_against_game,
    fingerprints,
    require_unchanged,
    used_policies,
)

RolloutObserver = Callable[["TrainingRun"], None]


class TrainingRun:
    """A run in its directory, ready to learn.

    Args:
        config: resolved (`TrainConfig.resolve`).
        directory: of the run.
        checkpoint: to continue from there; None starts at step 0.

    Attributes:
        outcomes: win rate of the learner over the games of the last rollout.
        on_rollout: called after each rollout, when `outcomes` is known.

    Raises:
        CheckpointError: the checkpoint is damaged or of another kind of run.
    """

    def __init__(
        self, config: TrainConfig, directory: RunDirectory, checkpoint: Path | None = None
    ) -> None:
        state = None if checkpoint is None else load_state(checkpoint)
        self.config = config
        self.directory = directory
        self.algorithm = ALGORITHMS[config.rl_algo]
        self._build()
        self.outcomes = WinRate(0, 0)
        self.on_rollout: RolloutObserver | None = None
        self._snapshot: dict[str, Any] = {}
        self._snapshot_policy: NetworkPolicy | None = None
        # The global generators, which SB3 draws from, as this run needs them.
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
        config, algorithm = self.config, self.algorithm
        seeds = RunSeeds.of(config.seed)
        arguments = algorithm.arguments(config.rl_args, config.batch_size, config.num_env)
        self.stack = Stack(config, seeds, arguments.get("gamma", 0.99), self.progress)
        start = [used.load(config) for used in used_policies(config) if used.role == "loaded"]
        self.learner = algorithm.make(
            self.stack.venv,
            arguments,
            learning_rate(config.learning_rate, config.learning_rate_schedule),
            int(seeds.learner.generate_state(1)[0]),
            start[0] if start else None,
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
        callback = _ReplayCallback if self.algorithm.replays else RunCallback
        try:
            fit(
                learner,
                config.total_timesteps,
                callback(self, display),
                resume=learner.num_timesteps > 0,
                change_total=True,  # the config has the total, not the restored learner
                # A replaying learner would dump its log by episodes; the callback does by rollouts.
                log_interval=None if self.algorithm.replays else 1,
            )
        except ValueError as error:
            if "found invalid values" not in str(error):
                raise
            raise RunError(
                f"learning diverged at {learner.num_timesteps:,} steps: the policy's output is not "
                f"finite; try a smaller learning_rate, log_std_init or max_grad_norm"
            ) from None
        finally:
            display.close()
        if self.stopping and learner.num_timesteps < config.total_timesteps:
            if not self.algorithm.replays:
                self.save_checkpoint()
            self.directory.stop_if_asked()
        final = self.save_policy(self.run_dir / FINAL_MODEL_DIR)
        self.directory.steps = learner.num_timesteps
        self.directory.write_status("running")  # the evaluation may follow
        return final

    def exchange_opponents(
        self, types: list[str], paths: list[str], seed: np.random.SeedSequence
    ) -> None:
        """Embed other policies, as many as before; all games start anew.

        Args:
            types: kinds of the policies.
            paths: where they are.
            seed: of their draws.

        Raises:
            AprlError: a policy is missing, or does not fit the game.
        """
        self.config.embed_types, self.config.embed_paths = types, paths
        self.stack.exchange_opponents(seed)
        learner = self.learner
        if learner._last_obs is not None:
            learner._last_obs = self.stack.venv.reset()  # type: ignore[assignment]
            learner._last_episode_starts = np.ones(self.config.num_env, dtype=bool)

    @property
    def stopping(self) -> bool:
        """Whether a signal asked the run to stop."""
        return self.directory.signals.received is not None

    def policy(self) -> NetworkPolicy:
        """The present policy, complete with its normaliser; it does not learn on."""
        with torch.random.fork_rng(devices=()):  # networks draw initial weights, which go unused
            learned = self.algorithm.policy_of(self.learner, self.stack.normaliser)
        return self.stack.finished_policy(learned, self.config.make_attack())

    def save_policy(self, directory: Path) -> Path:
        """Write the present policy with its provenance."""
        return self._save_policy(self.policy(), directory, self.learner.num_timesteps)

    def _save_policy(self, policy: NetworkPolicy, directory: Path, steps: int) -> Path:
        config = self.config
        parents = [
            {"role": used.role, "path": used.path}
            for used in used_policies(config)
            if used.role != "normal_opponent"
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

    @property
    def checkpoint_is_due(self) -> bool:
        """Whether enough steps were made since the last checkpoint."""
        made = self.learner.num_timesteps - self.directory.steps
        return made >= self.config.checkpoint_interval


class RunCallback(BaseCallback):
    """Ties the algorithm's loop to the run: snapshots, checkpoints, logs, progress, stopping."""

    def __init__(self, run: TrainingRun, display: ProgressDisplay) -> None:
        super().__init__()
        self._run = run
        self._display = display

    def _on_rollout_start(self) -> None:
        self._run.take_snapshot()
        if self._run.checkpoint_is_due:
            self._run.save_checkpoint()

    def _on_step(self) -> bool:
        self._show()
        return not self._run.stopping

    def _show(self, status: str | None = None) -> None:
        self._display.update(self.num_timesteps, status)

    def _on_rollout_end(self) -> None:
        run = self._run
        outcomes = run.stack.monitor.outcomes
        run.outcomes = WinRate(outcomes.wins[run.config.agent_idx], outcomes.games)
        for name, value in run.stack.log_values().items():
            self.logger.record(name, value)
        shown = f"learner wins {run.outcomes}" if run.outcomes.games else "no game finished yet"
        self._show(shown)
        if run.on_rollout is not None:
            run.on_rollout(run)


class _ReplayCallback(RunCallback):
    """For learners with a replay buffer, whose state is too large to copy at every rollout.

    Their rollouts are short: a stop waits for the end of the one in progress and of its updates.
    """

    _saved_to_stop = False

    def _on_rollout_start(self) -> None:
        run = self._run
        if run.stopping or run.checkpoint_is_due:
            run.take_snapshot()
            run.save_checkpoint()
            self._saved_to_stop = run.stopping

    def _on_step(self) -> bool:
        self._show()
        return not self._saved_to_stop

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        assert isinstance(self.model, OffPolicyAlgorithm)
        self.model.dump_logs()


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
