"""Score a match-up: `python -m aprl.score_agent with env_name=... agent_a_type=... ...`.

`score` is the function behind the command; it knows nothing of Sacred.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from rich.table import Table

from aprl.activations import ActivationRecorder, WatchedPolicy, save_activations
from aprl.configs.checks import (
    MAX_SEED,
    MAX_THREADS,
    check_entries,
    require_at_least,
    require_between,
    require_nonempty,
    require_within,
    with_types,
)
from aprl.envs import OpponentMask, VecMultiEnv, check_env_id, is_mujoco_game, make_vec
from aprl.envs.description import describe_game
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import require_writable_directory
from aprl.imitation.demonstrations import Demonstrations, save_demonstrations
from aprl.imitation.rollouts import GameRecorder
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy, resolve_policy_directory
from aprl.policies.noise import NoisyPolicy
from aprl.policies.store import read_header
from aprl.scoring import Score, StepObserver, play_games
from aprl.training.records import ProgressDisplay
from aprl.training.transparent import require_transparency_keys
from aprl.videos import VideoOptions, VideoRecorder

_TEXTS = ("root_dir", "agent_a_path", "agent_b_path", "zoo_dir", "record", "activations")


@dataclass
class ScoreConfig:
    """Options of `aprl.score_agent`; names as in the original library where it had them."""

    root_dir: str = "data/scores"  # records of the experiment go to `sacred/score` in here
    env_name: str = "multicomp/YouShallNotPassHumans-v1"
    agent_a_type: str = "zoo"  # player 0
    agent_a_path: str = "1"
    agent_b_type: str = "zoo"  # player 1
    agent_b_path: str = "1"
    num_env: int = 64  # environments in the batch
    num_threads: int = 0  # of the physics; 0: every logical CPU
    episodes: int | None = 20  # games, counted exactly; None: as many as fit into timesteps
    timesteps: int | None = None  # bound on environment steps; None: no bound
    max_episode_steps: int | None = None  # None: the game's default limit
    deterministic: bool = False  # both play their modes instead of sampling
    mask_agent_index: int | None = None  # hide this agent's opponent from it
    # initialization, zeros, additive_noise or debug: see aprl.envs.OpponentMask
    mask_agent_masking_type: str = "initialization"
    mask_agent_noise: float | None = None  # standard deviation of additive_noise
    noisy_agent_index: int | None = None  # multiply this agent's actions by 1 + Gaussian noise
    noisy_agent_magnitude: float = 1.0  # standard deviation of that noise
    videos: bool = False  # film the games, played one after the other (num_env is 1 then)
    # save_dir (None: <root_dir>/videos), camera, width, height, fps, annotated, single_file:
    # see aprl.videos.VideoOptions
    video_params: dict[str, Any] = field(default_factory=dict)
    zoo_dir: str = "data/agent_zoo"  # imported published policies
    record: str | None = None  # .npz to write one player's episodes to, as demonstrations
    # .npz to write to what one player's network computes, step by step
    activations: str | None = None
    # obs, ff_policy, ff_value (hidden units of the towers), hid (recurrent state)
    activation_keys: list[str] = field(default_factory=lambda: ["ff_policy", "ff_value"])
    record_agent: int | None = None  # whose episodes and activations; None: the game's victim
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work, before any environment is built.

        Raises:
            ConfigError: a wrong value.
            PolicyError: a policy that is missing or damaged.
        """
        check_env_id(self.env_name)
        require_at_least("num_env", self.num_env, 1)
        require_between("num_threads", self.num_threads, 0, MAX_THREADS)
        require_between("seed", self.seed, 0, MAX_SEED)
        require_nonempty(self, _TEXTS)
        for name in ("episodes", "timesteps", "max_episode_steps"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        if self.episodes is None and self.timesteps is None:
            raise ConfigError("give episodes or timesteps; both are None")
        if self.mask_agent_index is not None:
            if self.mask_agent_index not in (0, 1):
                raise ConfigError(f"mask_agent_index must be 0 or 1, got {self.mask_agent_index}")
            if not is_mujoco_game(self.env_name):
                raise ConfigError(f"only MuJoCo games can be masked, not {self.env_name}")
            self.mask(0)
        if self.noisy_agent_index is not None:
            if self.noisy_agent_index not in (0, 1):
                raise ConfigError(f"noisy_agent_index must be 0 or 1, got {self.noisy_agent_index}")
            require_within("noisy_agent_magnitude", self.noisy_agent_magnitude, 0, 1e6)
            space = describe_game(self.env_name).action_spaces[self.noisy_agent_index]
            if not isinstance(space, spaces.Box):
                raise ConfigError(f"noise needs continuous actions, not those of {self.env_name}")
        if self.videos:
            if not is_mujoco_game(self.env_name):
                raise ConfigError(f"only MuJoCo games can be filmed, not {self.env_name}")
            self.video_options()
        elif self.video_params:
            raise ConfigError("video_params was given without videos=True")
        for name in ("record", "activations"):
            path = getattr(self, name)
            if path is not None and Path(path).suffix != ".npz":
                raise ConfigError(f"{name} must name an .npz file, got {path}")
        require_transparency_keys(self.activation_keys)
        if self.record_agent not in (None, 0, 1):
            raise ConfigError(f"record_agent must be 0 or 1, got {self.record_agent!r}")
        for index, (kind, path) in enumerate(self.agents):
            directory = resolve_policy_directory(kind, path, self.env_name, index, self.zoo_dir)
            if directory is not None:
                read_header(directory)
            elif self.activations is not None and index == self.recorded:
                raise ConfigError(f"a policy of type {kind} has no activations to look at")

    def mask(self, seed: int | np.random.SeedSequence) -> OpponentMask:
        """What the masked agent sees in place of its opponent.

        Raises:
            ConfigError: unknown type or unusable noise.
        """
        return OpponentMask(self.mask_agent_masking_type, self.mask_agent_noise, seed)

    def video_options(self) -> tuple[Path, VideoOptions]:
        """Where videos go and how they look.

        Raises:
            ConfigError: unknown or unusable entries of `video_params`.
        """
        values = dict(self.video_params)
        directory = values.pop("save_dir", None) or Path(self.root_dir) / "videos"
        check_entries(VideoOptions, values)
        options = with_types(VideoOptions(**values))
        options.check()
        return Path(directory), options

    @property
    def agents(self) -> list[tuple[str, str]]:
        """Type and path of players 0 and 1."""
        return [
            (self.agent_a_type, str(self.agent_a_path)),
            (self.agent_b_type, str(self.agent_b_path)),
        ]

    @property
    def recorded(self) -> int:
        """Index of the player whose episodes are recorded."""
        return victim_index(self.env_name) if self.record_agent is None else self.record_agent


def score(config: ScoreConfig, on_progress: Callable[[int], None] | None = None) -> Score:
    """Play the match-up that `config` describes.

    Args:
        config: checked here.
        on_progress: told the number of finished games after each step.

    Raises:
        AprlError: bad input.
    """
    config = with_types(config)
    config.check()
    env_seed, *agent_seeds, mask_seed, noise_seed = np.random.SeedSequence(config.seed).spawn(5)
    num_env = 1 if config.videos else config.num_env
    if config.episodes is not None:
        num_env = min(num_env, config.episodes)
    options: dict[str, Any] = {}
    if config.max_episode_steps is not None:
        options["max_episode_steps"] = config.max_episode_steps
    if is_mujoco_game(config.env_name):
        options["num_threads"] = config.num_threads
    if config.mask_agent_index is not None:
        options["masks"] = {config.mask_agent_index: config.mask(mask_seed)}
    venv: VecMultiEnv = make_vec(config.env_name, num_env, env_seed, **options)
    policies: list[Policy] = [
        load_policy(
            kind,
            path,
            observation_space=venv.observation_spaces[index],
            action_space=venv.action_spaces[index],
            env_name=config.env_name,
            index=index,
            seed=agent_seeds[index],
            zoo_dir=config.zoo_dir,
        )
        for index, (kind, path) in enumerate(config.agents)
    ]
    observers: list[StepObserver] = []
    for path in (config.record, config.activations):
        if path is not None:
            require_writable_directory(Path(path).parent)
    watcher = None
    if config.activations is not None:
        watched = WatchedPolicy(policies[config.recorded], config.activation_keys)
        policies[config.recorded] = watched
        watcher = ActivationRecorder(watched, venv.num_envs)
        observers.append(watcher)
    noisy, magnitude = config.noisy_agent_index, config.noisy_agent_magnitude
    if noisy is not None:
        policies[noisy] = NoisyPolicy(policies[noisy], lambda: magnitude, noise_seed)
    if config.videos:
        directory, video_options = config.video_options()
        labels = [f"{kind} {Path(path).name}" for kind, path in config.agents]
        venv = VideoRecorder(venv, directory, labels, victim_index(config.env_name), video_options)
    recorder = GameRecorder(venv.num_envs, config.recorded) if config.record else None
    if recorder is not None:
        observers.append(recorder)
    try:
        result = play_games(
            venv,
            policies,
            config.episodes,
            config.timesteps,
            config.deterministic,
            on_progress,
            observers,
        )
    finally:
        venv.close()
    if not result.games:
        raise RunError(f"no game finished within {config.timesteps} time steps; give more")
    kind, path = config.agents[config.recorded]
    provenance = {
        "env_name": config.env_name,
        "agent_index": config.recorded,
        "policy": {"type": kind, "path": path},
        "seed": config.seed,
    }
    if recorder is not None and config.record is not None:
        spaces = venv.observation_spaces[config.recorded], venv.action_spaces[config.recorded]
        episodes = Demonstrations(tuple(recorder.finished), *spaces, provenance)
        save_demonstrations(episodes, config.record)
    if watcher is not None and config.activations is not None:
        opponent = dict(zip(("type", "path"), config.agents[1 - config.recorded], strict=True))
        save_activations(watcher.result(provenance | {"opponent": opponent}), config.activations)
    return result


def score_table(config: ScoreConfig, result: Score) -> Table:
    """Wins of each player and ties, with counts and 95 % Wilson intervals."""
    table = Table(title=f"{config.env_name}, {result.games} games")
    for column in ("player", "policy", "wins"):
        table.add_column(column)
    for index, (kind, path) in enumerate(config.agents):
        masked = " (masked)" if index == config.mask_agent_index else ""
        table.add_row(str(index), f"{kind} {path}{masked}", str(result.win_rate(index)))
    table.add_row("", "ties", f"{result.ties}/{result.games}")
    return table


score_experiment = CommandExperiment("score", ScoreConfig)


@score_experiment.main
def _run(_config: dict[str, Any]) -> dict[str, Any]:
    """Score as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        check_entries(ScoreConfig, values)
        config = with_types(ScoreConfig(**values))
        enabled = config.progress and config.episodes is not None
        display = ProgressDisplay(
            config.episodes or 1, enabled=enabled, verb="scoring", unit="games"
        )
        try:
            result = score(config, on_progress=display.update)
        finally:
            display.close()
        output().print(score_table(config, result))
        if config.videos:
            output().print(f"videos in {config.video_options()[0]}")
        return result.to_dict()


def main() -> None:
    """Command line."""
    command_line(score_experiment, default_root="data/scores", argv=sys.argv)


if __name__ == "__main__":
    main()
