"""One imitation run: build it from a config, learn, checkpoint, stop cleanly, resume exactly."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from aprl.envs import VecMultiEnv, make_vec
from aprl.errors import ConfigError, RunError
from aprl.files import read_json, require_path, sha256, write_json
from aprl.imitation.adversarial import AdversarialTrainer, default_reward_net
from aprl.imitation.bc import clone, fresh_policy
from aprl.imitation.config import ImitationConfig
from aprl.imitation.demonstrations import Demonstrations, load_demonstrations
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.evaluate import Comparison, compare_returns
from aprl.imitation.generator import TransitionRecorder
from aprl.policies.loader import load_policy
from aprl.policies.network import MlpPolicy
from aprl.policies.store import load_saved, save_policy
from aprl.rewards import save_reward_net
from aprl.runs import (
    CONFIG_FILE,
    FINAL_MODEL_DIR,
    PROGRESS_FILE,
    STATUS_FILE,
    TENSORBOARD_DIR,
)
from aprl.training.checkpoints import load_state, save_state
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.learner import make_ppo, policy_of
from aprl.training.learning_rate import learning_rate
from aprl.training.random_state import PrivateRandomState
from aprl.training.records import CsvLog, ProgressDisplay
from aprl.training.run_directory import RunDirectory

REWARD_FILE = "reward_net.safetensors"
EVALUATION_FILE = "evaluation.json"


def make_environment(
    config: ImitationConfig, num_envs: int, seed: np.random.SeedSequence
) -> GymVecEnv | FlattenSingletonVecEnv:
    """The imitator's environment: a Gymnasium one, or a game with the opponent embedded."""
    if not config.is_game:
        return GymVecEnv(config.env_name, num_envs, seed, config.horizon, **config.env_options)
    game_seed, opponent_seed = seed.spawn(2)
    game = make_vec(config.env_name, num_envs, game_seed, **config.env_options)
    opponent = 1 - config.imitated_agent
    policy = load_policy(
        config.opponent_type,
        config.opponent_path,
        observation_space=game.observation_spaces[opponent],
        action_space=game.action_spaces[opponent],
        env_name=config.env_name,
        index=opponent,
        seed=opponent_seed,
    )
    return FlattenSingletonVecEnv(CurryVecEnv(game, policy, opponent), config.imitated_agent)


def _seeds(config: ImitationConfig) -> list[np.random.SeedSequence]:
    """Of the environment, the policy, the trainer, the reward net and the evaluation."""
    return np.random.SeedSequence(config.seed).spawn(5)


class ImitationRun:
    """A run in its directory, ready to learn.

    Args:
        config: checked (`ImitationConfig.check`).
        demonstrations: those that the config asks for.
        directory: of the run.
        state: what a checkpoint holds, to continue from there; None starts at step 0.
    """

    def __init__(
        self,
        config: ImitationConfig,
        demonstrations: Demonstrations,
        directory: RunDirectory,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.config, self.demonstrations, self.directory = config, demonstrations, directory
        env_seed, self._policy_seed, self._trainer_seed, net_seed, _ = _seeds(config)
        self.trainer: AdversarialTrainer | None = None
        if config.algorithm == "bc":
            return
        self.venv = make_environment(config, config.num_env, env_seed)
        demonstrations.require_spaces(
            self.venv.observation_space, self.venv.action_space, config.env_name
        )
        self.trainer = self._make_trainer(net_seed)
        if state is not None:
            self._restore(state)
        steps = self.trainer.generator.num_timesteps
        self.trainer.generator.set_logger(
            Logger(
                str(self.run_dir / "rl"),
                [
                    CsvLog(self.run_dir / PROGRESS_FILE, until=steps),
                    TensorBoardOutputFormat(str(self.run_dir / TENSORBOARD_DIR)),
                ],
            )
        )

    def _make_trainer(self, net_seed: np.random.SeedSequence) -> AdversarialTrainer:
        config, venv = self.config, TransitionRecorder(self.venv)
        if config.warm_start:
            start = clone(
                self.demonstrations, config.cloning(), self._policy_seed, config.policy_hidden
            ).policy
        else:
            start = fresh_policy(self.demonstrations, self._policy_seed, config.policy_hidden)
        arguments = config.ppo_arguments()
        with PrivateRandomState(net_seed).lent():
            generator = make_ppo(
                venv,
                arguments,
                learning_rate(config.learning_rate, config.learning_rate_schedule),
                int(self._policy_seed.generate_state(1)[0]),
                start,
            )
            net = default_reward_net(
                config.algorithm,
                venv.observation_space,
                venv.action_space,
                generator.gamma,
                hidden=config.reward_hidden,
                spectral_norm=config.spectral_norm,
            )
        return AdversarialTrainer(
            generator,
            self.demonstrations.trajectories,
            config.adversarial(),
            net,
            self._trainer_seed,
        )

    @property
    def num_timesteps(self) -> int:
        """Environment steps made so far; 0 for cloning, which makes none."""
        return 0 if self.trainer is None else self.trainer.generator.num_timesteps

    @property
    def run_dir(self) -> Path:
        """Path of the run directory."""
        return self.directory.path

    def train(self) -> Path:
        """Learn to the end; returns the directory of the final policy.

        Raises:
            Interrupted: by SIGINT or SIGTERM, after saving a checkpoint.
            AprlError: the training failed, and the last checkpoint is intact; or another process is
                at work in the directory.
        """
        with self.directory.at_work():
            policy = self._clone() if self.trainer is None else self._imitate(self.trainer)
            final = save_policy(policy, self.run_dir / FINAL_MODEL_DIR, self._provenance())
            self.directory.steps = self.num_timesteps
        return final

    def _clone(self) -> MlpPolicy:
        config = self.config
        display = ProgressDisplay(
            config.bc_epochs, enabled=config.progress, verb="cloning", unit="epochs"
        )
        log = CsvLog(self.run_dir / PROGRESS_FILE)

        def report(epoch: int, train_loss: float, validation_loss: float) -> None:
            log.write(
                {
                    "epoch": epoch,
                    "train_loss": train_loss,
                    "validation_loss": validation_loss,
                },
                {},
            )
            display.update(epoch, f"validation loss {validation_loss:.3f}")

        try:
            return clone(
                self.demonstrations,
                config.cloning(),
                self._policy_seed,
                config.policy_hidden,
                on_epoch=report,
            ).policy
        finally:
            display.close()

    def _imitate(self, trainer: AdversarialTrainer) -> MlpPolicy:
        config = self.config
        display = ProgressDisplay(
            config.total_timesteps, self.num_timesteps, enabled=config.progress
        )

        def on_round(trainer: AdversarialTrainer) -> bool:
            returns = [episode["r"] for episode in trainer.generator.ep_info_buffer or []]
            shown = f"return {np.mean(returns):.1f}  " if returns else ""
            accuracy = trainer.statistics["accuracy"]
            display.update(self.num_timesteps, f"{shown}discriminator {accuracy:.0%}")
            stopping = self.directory.signals.received is not None
            due = self.num_timesteps - self.directory.steps >= config.checkpoint_interval
            if stopping or due:
                self.save_checkpoint()
            return not stopping

        try:
            trainer.train(
                config.total_timesteps,
                callback=_Display(display),
                on_round=on_round,
                resume=self.num_timesteps > 0,
            )
        finally:
            display.close()
        if self.num_timesteps < config.total_timesteps:
            self.directory.stop_if_asked("aprl.imitation.train")
        save_reward_net(trainer.reward.net, self.run_dir / REWARD_FILE, self._provenance())
        return policy_of(trainer.generator, None)  # type: ignore[arg-type]

    def evaluate(self) -> Comparison:
        """Compare the final policy with the expert and a random policy, in a fresh environment."""
        return _evaluate(self.config, self.demonstrations, self.run_dir)

    @property
    def _environment(self) -> GymVecEnv | VecMultiEnv:
        """What has the environment's state."""
        if isinstance(self.venv, FlattenSingletonVecEnv):
            return self.venv.game
        return self.venv

    def save_checkpoint(self) -> None:
        """Write the complete state; valid between rounds."""
        assert self.trainer is not None
        state = {
            "trainer": self.trainer.state_dict(),
            "environment": self._environment.state_dict(),
            "wall_time_s": self.directory.wall_time_s,
        }
        save_state(self.directory.checkpoint(self.num_timesteps), state)
        self.directory.steps = self.num_timesteps
        self.directory.write_status("running")
        self.directory.prune_checkpoints(self.config.keep_checkpoints)

    def _restore(self, state: dict[str, Any]) -> None:
        assert self.trainer is not None
        self._environment.load_state_dict(state["environment"])
        self.trainer.load_state_dict(state["trainer"])
        self.directory.continue_from(self.num_timesteps, state["wall_time_s"])

    def _provenance(self) -> dict[str, Any]:
        config = self.config
        return {
            "env_name": config.env_name,
            "agent_index": config.imitated_agent if config.is_game else 0,
            "algorithm": config.algorithm,
            "seed": config.seed,
            "steps": self.num_timesteps,
            "wall_time_s": round(self.directory.wall_time_s, 1),
            "run": self.run_dir.name,
            "demonstrations": self.demonstrations.provenance,
        }


class _Display(BaseCallback):
    """Moves the progress bar between rounds."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__()
        self._display = display

    def _on_step(self) -> bool:
        self._display.update(self.num_timesteps)
        return True


def start_run(config: ImitationConfig) -> ImitationRun:
    """Check the config and the demonstrations, make the run directory, build the run.

    Raises:
        AprlError: something cannot work; nothing was written.
    """
    config = config.check()
    demonstrations = _demonstrations(config)
    directory = RunDirectory.create(config, _fingerprints(config))
    try:
        return ImitationRun(config, demonstrations, directory)
    except BaseException:  # what cannot even start leaves no run behind
        directory.remove()
        raise


def resume_run(run_dir: Path | str, progress: bool | None = None) -> ImitationRun:
    """Rebuild a run from its newest readable checkpoint, or from the start if it has made none.

    Other processes are kept out of the directory from here until the end of `train`.

    Args:
        run_dir: of the run.
        progress: show progress on the terminal; None: as the run was configured.

    Raises:
        RunError: no such run, it is complete, it has no usable checkpoint, another process is at
            work on it, or its config is damaged or its demonstrations have changed.
    """
    path = require_path(run_dir, "the run directory")
    config, recorded = _read_config(path)
    if progress is not None:
        config = replace(config, progress=progress)
    directory = RunDirectory(path)
    directory.acquire()
    try:
        if (path / FINAL_MODEL_DIR).exists():
            raise RunError(f"{run_dir} is complete; there is nothing to resume")
        _require_unchanged(config, recorded, path)
        return _rebuild(config, directory)
    except BaseException:
        directory.release()
        raise


def evaluate_complete_run(run_dir: Path | str) -> tuple[ImitationConfig, Comparison] | None:
    """Evaluate a run that was killed after its training; None if that is not what it lacks.

    Raises:
        RunError: no such run, or its config is damaged or its demonstrations have changed.
    """
    path = require_path(run_dir, "the run directory")
    config, recorded = _read_config(path)
    trained = (path / FINAL_MODEL_DIR).exists()
    if not trained or not config.eval_episodes or (path / EVALUATION_FILE).exists():
        return None
    _require_unchanged(config, recorded, path)
    return config, _evaluate(config, _demonstrations(config), path)


def _evaluate(config: ImitationConfig, demonstrations: Demonstrations, run_dir: Path) -> Comparison:
    env_seed, play_seed = _seeds(config)[-1].spawn(2)
    venv = make_environment(config, min(config.num_env, config.eval_episodes), env_seed)
    demonstrations.require_spaces(venv.observation_space, venv.action_space, config.env_name)
    policy = load_saved(run_dir / FINAL_MODEL_DIR)
    comparison = compare_returns(
        venv, policy, demonstrations.trajectories, config.eval_episodes, play_seed
    )
    venv.close()
    write_json(run_dir / EVALUATION_FILE, comparison.to_dict())
    return comparison


def _require_unchanged(config: ImitationConfig, recorded: dict[str, Any], run_dir: Path) -> None:
    if recorded not in ({}, _fingerprints(config)):
        raise RunError(f"{config.demonstrations} has changed since {run_dir} began")


def _read_config(run_dir: Path) -> tuple[ImitationConfig, dict[str, Any]]:
    path = run_dir / CONFIG_FILE
    record = read_json(path)
    if not isinstance(record, dict):
        raise RunError(f"{path} holds no settings")
    recorded = record.pop("fingerprints", {})
    try:
        return ImitationConfig.from_dict(record).check(), recorded
    except ConfigError as error:
        raise RunError(f"{path}: {error}") from None


def _rebuild(config: ImitationConfig, directory: RunDirectory) -> ImitationRun:
    demonstrations = _demonstrations(config)
    checkpoints = directory.checkpoints()
    if not checkpoints and (directory.path / STATUS_FILE).exists():
        return ImitationRun(config, demonstrations, directory)  # stopped before its first one
    reasons = []
    for checkpoint in checkpoints:
        try:
            state = load_state(checkpoint)
        except RunError as error:
            reasons.append(str(error))
            continue
        return ImitationRun(config, demonstrations, directory, state)
    raise RunError(
        f"{directory.path} has no usable checkpoint to resume from {'; '.join(reasons)}".strip()
    )


def _demonstrations(config: ImitationConfig) -> Demonstrations:
    assert config.demonstrations is not None
    return load_demonstrations(config.demonstrations).first(config.n_demonstrations)


def _fingerprints(config: ImitationConfig) -> dict[str, str]:
    assert config.demonstrations is not None
    return {"demonstrations": sha256(config.demonstrations)}
