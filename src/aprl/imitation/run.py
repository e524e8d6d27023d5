"""One imitation run: build it from a config, learn, checkpoint, stop cleanly, resume exactly."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger, TensorBoardOutputFormat

from aprl import __version__
from aprl.envs import VecMultiEnv, make_vec
from aprl.errors import RunError
from aprl.files import read_json, write_json
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
    CHECKPOINT_DIR,
    CONFIG_FILE,
    FINAL_MODEL_DIR,
    PROGRESS_FILE,
    STATUS_FILE,
    TENSORBOARD_DIR,
    new_run_dir,
)
from aprl.training.checkpoints import load_state, save_state
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.interruption import Interrupted, StopSignal
from aprl.training.learner import make_ppo, policy_of
from aprl.training.random_state import PrivateRandomState
from aprl.training.records import CsvLog, ProgressDisplay

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


class ImitationRun:
    """A run in its directory, ready to learn.

    Args:
        config: checked (`ImitationConfig.check`).
        demonstrations: those that the config asks for.
        run_dir: an existing directory of its own.
        state: what a checkpoint holds, to continue from there; None starts at step 0.
    """

    def __init__(
        self,
        config: ImitationConfig,
        demonstrations: Demonstrations,
        run_dir: Path,
        state: dict[str, Any] | None = None,
    ) -> None:
        self.config, self.demonstrations, self.run_dir = config, demonstrations, run_dir
        seeds = np.random.SeedSequence(config.seed).spawn(5)
        env_seed, self._policy_seed, self._trainer_seed, net_seed, self._eval_seed = seeds
        self._started, self._earlier_s = time.monotonic(), 0.0
        self.last_checkpoint = 0
        self.stop_signal = StopSignal()
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
                str(run_dir / "rl"),
                [
                    CsvLog(run_dir / PROGRESS_FILE, until=steps),
                    TensorBoardOutputFormat(str(run_dir / TENSORBOARD_DIR)),
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
        rate = config.learning_rate
        with PrivateRandomState(net_seed).lent():
            generator = make_ppo(
                venv,
                arguments,
                (lambda remaining: rate * remaining)
                if config.learning_rate_schedule == "linear"
                else rate,
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
    def wall_time_s(self) -> float:
        """Seconds spent on this run so far, earlier processes included."""
        return self._earlier_s + time.monotonic() - self._started

    def train(self) -> Path:
        """Learn to the end; returns the directory of the final policy.

        Raises:
            Interrupted: by SIGINT or SIGTERM, after saving a checkpoint.
            AprlError: the training failed; the last checkpoint is intact.
        """
        try:
            self._write_status("running")
            policy = self._clone() if self.trainer is None else self._imitate(self.trainer)
        except Interrupted:
            self._write_status("interrupted")
            raise
        except BaseException:
            self._write_status("failed")
            raise
        final = save_policy(policy, self.run_dir / FINAL_MODEL_DIR, self._provenance())
        self._write_status("completed")
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
            stopping = self.stop_signal.received is not None
            due = self.num_timesteps - self.last_checkpoint >= config.checkpoint_interval
            if stopping or due:
                self.save_checkpoint()
            return not stopping

        try:
            with self.stop_signal.listening():
                trainer.train(
                    config.total_timesteps,
                    callback=_Display(display),
                    on_round=on_round,
                    resume=self.num_timesteps > 0,
                )
        finally:
            display.close()
        signum = self.stop_signal.received
        if signum is not None and self.num_timesteps < config.total_timesteps:
            raise Interrupted(signum, self.run_dir, self.num_timesteps, "aprl.imitation.train")
        save_reward_net(trainer.reward.net, self.run_dir / REWARD_FILE, self._provenance())
        return policy_of(trainer.generator, None)  # type: ignore[arg-type]

    def evaluate(self) -> Comparison:
        """Compare the final policy with the expert and a random policy, in a fresh environment."""
        config = self.config
        env_seed, play_seed = self._eval_seed.spawn(2)
        venv = make_environment(config, min(config.num_env, config.eval_episodes), env_seed)
        self.demonstrations.require_spaces(
            venv.observation_space, venv.action_space, config.env_name
        )
        policy = load_saved(self.run_dir / FINAL_MODEL_DIR)
        comparison = compare_returns(
            venv, policy, self.demonstrations.trajectories, config.eval_episodes, play_seed
        )
        venv.close()
        write_json(self.run_dir / EVALUATION_FILE, comparison.to_dict())
        return comparison

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
            "wall_time_s": self.wall_time_s,
        }
        save_state(self.run_dir / CHECKPOINT_DIR / f"{self.num_timesteps:012d}", state)
        self.last_checkpoint = self.num_timesteps
        self._write_status("running")

    def _restore(self, state: dict[str, Any]) -> None:
        assert self.trainer is not None
        self._environment.load_state_dict(state["environment"])
        self.trainer.load_state_dict(state["trainer"])
        self._earlier_s = state["wall_time_s"]
        self.last_checkpoint = self.num_timesteps

    def _provenance(self) -> dict[str, Any]:
        config = self.config
        return {
            "env_name": config.env_name,
            "agent_index": config.imitated_agent if config.is_game else 0,
            "algorithm": config.algorithm,
            "seed": config.seed,
            "steps": self.num_timesteps,
            "wall_time_s": round(self.wall_time_s, 1),
            "run": self.run_dir.name,
            "demonstrations": self.demonstrations.provenance,
        }

    def _write_status(self, status: str) -> None:
        write_json(
            self.run_dir / STATUS_FILE,
            {
                "status": status,
                "num_timesteps": self.num_timesteps,
                "wall_time_s": round(self.wall_time_s, 1),
                "aprl_version": __version__,
            },
        )


class _Display(BaseCallback):
    """Moves the progress bar between rounds."""

    def __init__(self, display: ProgressDisplay) -> None:
        super().__init__()
        self._display = display

    def _on_step(self) -> bool:
        self._display.update(self.num_timesteps)
        return True


def start_run(config: ImitationConfig) -> ImitationRun:
    """Check the config and the demonstrations, make the run directory, build the run."""
    config = config.check()
    demonstrations = _demonstrations(config)
    run_dir = new_run_dir(config.root_dir, config.exp_name)
    write_json(run_dir / CONFIG_FILE, config.to_dict())
    try:
        return ImitationRun(config, demonstrations, run_dir)
    except BaseException:  # what cannot even start leaves no run behind
        shutil.rmtree(run_dir, ignore_errors=True)
        raise


def resume_run(run_dir: Path | str, progress: bool | None = None) -> ImitationRun:
    """Rebuild a run from its newest readable checkpoint.

    Args:
        run_dir: of the run.
        progress: show progress on the terminal; None: as the run was configured.

    Raises:
        RunError: no such run, it is complete, or it has no checkpoint.
    """
    run_dir = Path(run_dir)
    config = ImitationConfig.from_dict(read_json(run_dir / CONFIG_FILE)).check()
    if (run_dir / FINAL_MODEL_DIR).exists():
        raise RunError(f"{run_dir} is complete; there is nothing to resume")
    if progress is not None:
        config = replace(config, progress=progress)
    reasons = []
    for checkpoint in sorted((run_dir / CHECKPOINT_DIR).glob("[0-9]*"), reverse=True):
        try:
            state = load_state(checkpoint)
        except RunError as error:
            reasons.append(str(error))
            continue
        return ImitationRun(config, _demonstrations(config), run_dir, state)
    raise RunError(
        f"{run_dir} has no usable checkpoint to resume from {'; '.join(reasons)}".strip()
    )


def _demonstrations(config: ImitationConfig) -> Demonstrations:
    assert config.demonstrations is not None
    return load_demonstrations(config.demonstrations).first(config.n_demonstrations)
