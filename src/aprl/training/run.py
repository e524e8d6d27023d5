"""One training run: build it from a config, learn, checkpoint, stop cleanly, resume exactly."""

import contextlib
import copy
import itertools
import shutil
import time
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from aprl import __version__
from aprl.envs import VecMultiEnv, make_vec
from aprl.errors import ConfigError, RunError
from aprl.files import read_json, require_writable_directory, write_json
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy, resolve_policy_directory
from aprl.policies.network import MlpPolicy
from aprl.policies.store import fingerprint, read_header, save_policy
from aprl.runs import (
    CHECKPOINT_DIR,
    CONFIG_FILE,
    FINAL_MODEL_DIR,
    PROGRESS_FILE,
    STATUS_FILE,
    TENSORBOARD_DIR,
)
from aprl.stats import WinRate
from aprl.training.checkpoints import load_state, save_state
from aprl.training.config import TrainConfig
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, GameOutcomeMonitor
from aprl.training.incremental import fit
from aprl.training.interruption import Interrupted, StopSignal
from aprl.training.learner import make_ppo, policy_of, ppo_arguments
from aprl.training.normalize import VecNormalize
from aprl.training.random_state import global_random_state, set_global_random_state
from aprl.training.records import CsvLog, ProgressDisplay
from aprl.training.schedules import EpisodeStatistics
from aprl.training.shaping import (
    RewardShapingVecWrapper,
    annealer_from_params,
    statistics_window,
)


def new_run_dir(root_dir: str, exp_name: str) -> Path:
    """Make an empty run directory `<root_dir>/<time>-<exp_name>`; never one that exists.

    Raises:
        RunError: `root_dir` is not writable.
    """
    root = require_writable_directory(root_dir)
    stem = f"{datetime.now():%Y%m%d_%H%M%S}-{exp_name.replace('/', '_')}"[:240]
    for suffix in itertools.chain([""], (f"-{i}" for i in itertools.count(2))):
        path = root / f"{stem}{suffix}"
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable")


def loaded_policy_directories(config: TrainConfig) -> tuple[list[Path | None], Path | None]:
    """Where the embedded policies and the loaded one lie; None for policies without files.

    Raises:
        PolicyError: one is missing or is no policy.
    """
    assert config.embed_types is not None and config.embed_paths is not None
    embed_index = config.resolved_embed_index
    embedded = [
        resolve_policy_directory(kind, path, config.env_name, embed_index, config.zoo_dir)
        for kind, path in zip(config.embed_types, config.embed_paths, strict=True)
    ]
    load = config.load_policy
    loaded = None
    if load["path"] is not None:
        loaded = resolve_policy_directory(
            load["type"], load["path"], config.env_name, config.agent_idx, config.zoo_dir
        )
        if loaded is None:
            raise ConfigError(f"load_policy.type {load['type']!r} has no weights to fine-tune")
    normal = config.normal_opponent
    scored = None  # only loaded when the training is over
    if config.eval_episodes and normal["path"] is not None:
        scored = resolve_policy_directory(
            normal["type"], normal["path"], config.env_name, embed_index, config.zoo_dir
        )
    for directory in [*embedded, loaded, scored]:
        if directory is not None:
            read_header(directory)
    return embedded, loaded


class TrainingRun:
    """A run in its directory, ready to learn.

    Args:
        config: resolved (`TrainConfig.resolve`).
        run_dir: an existing directory of its own.
        state: what a checkpoint holds, to continue from there; None starts at step 0.

    Attributes:
        outcomes: win rate of the learner over the games of the last rollout.
    """

    def __init__(
        self, config: TrainConfig, run_dir: Path, state: dict[str, Any] | None = None
    ) -> None:
        self.config = config
        self.run_dir = run_dir
        self._build()
        self.outcomes = WinRate(0, 0)
        self._started = time.monotonic()
        self._earlier_s = 0.0
        self.stop_signal = StopSignal()
        self._snapshot: dict[str, Any] = {}
        self._snapshot_policy: MlpPolicy | None = None
        self.last_checkpoint = 0
        if state is not None:
            self._restore(state)
        steps = self.learner.num_timesteps
        self.learner.set_logger(
            Logger(
                str(run_dir / "rl"),
                [
                    CsvLog(run_dir / PROGRESS_FILE, until=steps),
                    TensorBoardOutputFormat(str(run_dir / TENSORBOARD_DIR)),
                ],
            )
        )
        if state is not None:
            for name, value in state["pending_log"].items():
                self.learner.logger.record(name, value)
        # PyTorch's and NumPy's global generators, which SB3 draws from, as this run needs them.
        self._random_state = global_random_state() if state is None else state["random_state"]

    def _build(self) -> None:
        config = self.config
        env_seed, embed_seed, learner_seed = np.random.SeedSequence(config.seed).spawn(3)
        game = make_vec(config.env_name, config.num_env, env_seed, **config.env_options())
        self.monitor = GameOutcomeMonitor(game)
        venv: VecMultiEnv = self.monitor
        assert config.embed_types is not None and config.embed_paths is not None
        for kind, path in zip(config.embed_types, config.embed_paths, strict=True):
            policy = self._load(game, kind, path, config.resolved_embed_index, embed_seed)
            venv = CurryVecEnv(
                venv, policy, config.resolved_embed_index, config.embed_deterministic
            )
        flat = FlattenSingletonVecEnv(venv, config.agent_idx)
        self.game = venv
        self.shaping: RewardShapingVecWrapper | None = None
        if config.rew_shape:
            episodes = EpisodeStatistics(statistics_window(config.rew_shape_params))
            self.shaping = RewardShapingVecWrapper(
                flat,
                config.rew_shape_params["weights"],
                annealer_from_params(config.rew_shape_params, episodes),
                self.progress,
                episodes,
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
        load = config.load_policy
        if load["path"] is not None:
            loaded = self._load(game, load["type"], load["path"], config.agent_idx, 0)
            if not isinstance(loaded, MlpPolicy):
                raise ConfigError(f"cannot fine-tune {load['path']}: only MLP policies so far")
            start = loaded
        self.learner = make_ppo(
            self.normaliser or inner,
            arguments,
            config.learning_rate,
            int(learner_seed.generate_state(1)[0]),
            start,
        )

    def _load(
        self,
        game: VecMultiEnv,
        kind: str,
        path: str,
        index: int,
        seed: int | np.random.SeedSequence,
    ) -> Policy:
        return load_policy(
            kind,
            path,
            observation_space=game.observation_spaces[index],
            action_space=game.action_spaces[index],
            env_name=self.config.env_name,
            index=index,
            seed=seed,
            zoo_dir=self.config.zoo_dir,
        )

    def progress(self) -> float:
        """Fraction of the whole run that is done, in [0, 1]."""
        return min(1.0, self.learner.num_timesteps / self.config.total_timesteps)

    @property
    def wall_time_s(self) -> float:
        """Seconds spent on this run so far, earlier processes included."""
        return self._earlier_s + time.monotonic() - self._started

    def train(self) -> Path:
        """Learn until `total_timesteps`; returns the directory of the final policy.

        Raises:
            Interrupted: by SIGINT or SIGTERM, after saving a checkpoint.
            RunError: an output could not be written; the last checkpoint is intact.
        """
        try:
            return self._train()
        except Interrupted:
            raise
        except BaseException as error:
            status = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            with contextlib.suppress(OSError):
                self._write_status(status, self.last_checkpoint)
            if not isinstance(error, OSError):
                raise
            kept = "there is no checkpoint yet"
            if self.last_checkpoint:
                kept = f"the last checkpoint, at {self.last_checkpoint:,} steps, is intact"
            raise RunError(
                f"cannot write to {self.run_dir}: {error.strerror or error}; {kept}"
            ) from None

    def _train(self) -> Path:
        config, learner = self.config, self.learner
        self._write_status("running")
        set_global_random_state(self._random_state)
        display = ProgressDisplay(
            config.total_timesteps, learner.num_timesteps, enabled=config.progress
        )
        try:
            with self.stop_signal.listening():
                fit(
                    learner,
                    config.total_timesteps,
                    _RunCallback(self, display),
                    resume=learner.num_timesteps > 0,
                    change_total=True,  # the config has the total, not the restored learner
                )
        finally:
            display.close()
        signum = self.stop_signal.received
        if signum is not None and learner.num_timesteps < config.total_timesteps:
            self.save_checkpoint()
            self._write_status("interrupted", self.last_checkpoint)
            raise Interrupted(signum, self.run_dir, self.last_checkpoint, "aprl.train")
        final = self.save_policy(self.run_dir / FINAL_MODEL_DIR)
        self._write_status("completed")
        return final

    @property
    def stopping(self) -> bool:
        """Whether a signal asked the run to stop."""
        return self.stop_signal.received is not None

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
                "wall_time_s": round(self.wall_time_s, 1),
                "run": self.run_dir.name,
                "parents": parents,
            },
        )

    def _write_status(self, status: str, steps: int | None = None) -> None:
        write_json(
            self.run_dir / STATUS_FILE,
            {
                "status": status,
                "num_timesteps": self.learner.num_timesteps if steps is None else steps,
                "wall_time_s": round(self.wall_time_s, 1),
                "aprl_version": __version__,
            },
        )

    def capture(self) -> dict[str, Any]:
        """Everything needed to continue exactly, copied; valid between two updates."""
        learner = self.learner
        optimizer = learner.policy.optimizer.state_dict()
        state = {
            "num_timesteps": learner.num_timesteps,
            "n_updates": learner._n_updates,
            "policy": learner.policy.state_dict(),
            "optimizer": {
                "state": [optimizer["state"][i] for i in sorted(optimizer["state"])],
                "param_groups": optimizer["param_groups"],
            },
            "last_obs": learner._last_obs,
            "last_episode_starts": learner._last_episode_starts,
            "episode_infos": list(learner.ep_info_buffer or []),
            "pending_log": dict(learner.logger.name_to_value),
            "random_state": global_random_state(),
            "game": self.game.state_dict(),
            "shaping": None if self.shaping is None else self.shaping.state_dict(),
            "normaliser": None if self.normaliser is None else self.normaliser.state_dict(),
            "wall_time_s": self.wall_time_s,
        }
        return copy.deepcopy(state)

    def _restore(self, state: dict[str, Any]) -> None:
        learner = self.learner
        learner.num_timesteps = self.last_checkpoint = state["num_timesteps"]
        learner._n_updates = state["n_updates"]
        learner.policy.load_state_dict(state["policy"])
        learner.policy.optimizer.load_state_dict(
            {
                "state": dict(enumerate(state["optimizer"]["state"])),
                "param_groups": state["optimizer"]["param_groups"],
            }
        )
        learner._last_obs = state["last_obs"]
        learner._last_episode_starts = state["last_episode_starts"]
        learner.ep_info_buffer = deque(state["episode_infos"], maxlen=learner._stats_window_size)
        learner.ep_success_buffer = deque(maxlen=learner._stats_window_size)
        self.game.load_state_dict(state["game"])
        if self.shaping is not None:
            self.shaping.load_state_dict(state["shaping"])
        if self.normaliser is not None:
            self.normaliser.load_state_dict(state["normaliser"])
        self._earlier_s = state["wall_time_s"]

    def take_snapshot(self) -> None:
        """Remember the present state and policy, for a stop in the middle of a rollout."""
        self._snapshot, self._snapshot_policy = self.capture(), self.policy()

    def save_checkpoint(self) -> None:
        """Write the last snapshot: complete state, and the policy that belongs to it."""
        assert self._snapshot_policy is not None
        steps = self._snapshot["num_timesteps"]
        directory = self.run_dir / CHECKPOINT_DIR / f"{steps:012d}"
        save_state(directory, self._snapshot)
        self._save_policy(self._snapshot_policy, directory / "policy", steps)
        self.last_checkpoint = steps
        self._write_status("running", steps)


class _RunCallback(BaseCallback):
    """Ties the algorithm's loop to the run: snapshots, checkpoints, logs, progress, stopping."""

    def __init__(self, run: TrainingRun, display: ProgressDisplay) -> None:
        super().__init__()
        self._run = run
        self._display = display

    def _on_rollout_start(self) -> None:
        run = self._run
        run.take_snapshot()
        if self.num_timesteps - run.last_checkpoint >= run.config.checkpoint_interval:
            run.save_checkpoint()

    def _on_step(self) -> bool:
        self._display.update(self.num_timesteps)
        return not self._run.stopping

    def _on_rollout_end(self) -> None:
        run = self._run
        for name, value in run.monitor.outcomes.log_values().items():
            self.logger.record(name, value)
        run.outcomes = WinRate(
            run.monitor.outcomes.wins[run.config.agent_idx], run.monitor.outcomes.games
        )
        run.monitor.outcomes.clear()
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
    """
    config = config.resolve()
    embedded, loaded = loaded_policy_directories(config)
    run_dir = new_run_dir(config.root_dir, config.exp_name)
    record = config.to_dict()
    record["fingerprints"] = {
        "embedded": [None if path is None else fingerprint(path) for path in embedded],
        "loaded": None if loaded is None else fingerprint(loaded),
    }
    write_json(run_dir / CONFIG_FILE, record)
    try:
        return TrainingRun(config, run_dir)
    except BaseException:  # what cannot even start leaves no run behind
        shutil.rmtree(run_dir, ignore_errors=True)
        raise


def resume_run(run_dir: Path | str) -> TrainingRun:
    """Rebuild a run from its newest readable checkpoint.

    Raises:
        RunError: no such run, it is complete, or it has no checkpoint.
    """
    run_dir = Path(run_dir)
    record = read_json(run_dir / CONFIG_FILE)
    if (run_dir / FINAL_MODEL_DIR).exists():
        raise RunError(f"{run_dir} is complete; there is nothing to resume")
    record.pop("fingerprints", None)
    config = TrainConfig.from_dict(record).resolve()
    checkpoints = sorted((run_dir / CHECKPOINT_DIR).glob("[0-9]*"), reverse=True)
    reasons = []
    for checkpoint in checkpoints:
        try:
            state = load_state(checkpoint)
        except RunError as error:
            reasons.append(str(error))
            continue
        return TrainingRun(config, run_dir, state)
    raise RunError(
        f"{run_dir} has no usable checkpoint to resume from {'; '.join(reasons)}".strip()
    )
