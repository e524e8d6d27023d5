"""Self-play: both sides of a game learn, each against past versions of the other.

`python -m aprl.train with self_play env_name=...` trains a victim and a normal opponent at once, as
Bansal et al. (ICLR 2018) did: in rounds, the sides in turn, opponents drawn from the other side's
snapshots so that nobody forgets how to beat earlier play. Dense reward is annealed away over the
run by `rew_shape_params.anneal_frac`.

The run directory holds `side0` and `side1`, each like a run of its own, with the snapshots of every
round; `final_model` is the victim's side, `opponent_model` the other's.
"""

import contextlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from aprl.configs.checks import check_entries, require_at_least, require_within, with_types
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError
from aprl.files import read_json, write_json
from aprl.runs import CONFIG_FILE, FINAL_MODEL_DIR
from aprl.train import TrainResult
from aprl.training.checkpoints import CheckpointError, load_state
from aprl.training.config import TrainConfig
from aprl.training.evaluate import Opponent, evaluate_against, scores_to_json
from aprl.training.incremental import IncrementalSession, incremental
from aprl.training.random_state import global_random_state, set_global_random_state
from aprl.training.records import ProgressDisplay
from aprl.training.run import RunCallback, TrainingRun
from aprl.training.run_directory import RunDirectory
from aprl.training.used_policies import check_against_game

SELF_PLAY_FILE = "self_play.json"
SNAPSHOTS_DIR = "snapshots"
OPPONENT_MODEL_DIR = "opponent_model"
EVALUATION_FILE = "evaluation.json"
_OPPONENTS_STREAM = 4  # spawn key of the draws of opponents, beside the run's other streams


@dataclass(frozen=True)
class SelfPlayParams:
    """`self_play_params` of a config.

    Attributes:
        round_timesteps: environment steps of one side before it is the other's turn.
        window: opponents are drawn from the newest fraction of the other side's snapshots, in
            (0, 1]; 1: from all.
        members: snapshots that a side plays at a time, drawn anew each round.
    """

    round_timesteps: int = 131_072
    window: float = 0.5
    members: int = 4

    def check(self) -> None:
        """Refuse what cannot work.

        Raises:
            ConfigError: names the entry.
        """
        require_at_least("self_play_params.round_timesteps", self.round_timesteps, 1)
        require_at_least("self_play_params.members", self.members, 2)
        require_within("self_play_params.window", self.window, 0, 1, open_low=True)


def params_of(config: TrainConfig) -> SelfPlayParams:
    """The parameters, checked.

    Raises:
        ConfigError: unknown or unusable ones.
    """
    check_entries(SelfPlayParams, config.self_play_params)
    params = with_types(SelfPlayParams(**config.self_play_params))
    params.check()
    return params


def side_config(config: TrainConfig, side: int, root: str) -> TrainConfig:
    """The config of one side's learner, before it has met anybody.

    Raises:
        ConfigError: entries that do not go with self-play.
    """
    for name in (
        *("embed_type", "embed_path", "embed_types", "embed_paths", "embed_index"),
        *("embed_weights", "adversaries", "defence", "attack", "transparent_params"),
    ):
        if getattr(config, name) is not None:
            raise ConfigError(f"{name} does not go with self_play, in which both sides learn")
    for name in ("load_policy", "normal_opponent"):
        if getattr(config, name).get("path") is not None:
            raise ConfigError(f"{name} does not go with self_play, which starts from nothing")
    members = params_of(config).members
    return replace(
        config,
        self_play=False,
        self_play_params={},
        root_dir=root,
        exp_name=f"side{side}",
        embed_index=1 - side,
        embed_types=["random"] * members,
        embed_paths=["none"] * members,
        eval_episodes=0,
        progress=False,
    )


def check_self_play(config: TrainConfig) -> None:
    """Check all that can be checked before anything is made.

    Raises:
        AprlError: something that would fail later.
    """
    for side in (0, 1):
        check_against_game(side_config(config, side, config.root_dir).resolve())
        if config.rl_algo == "sac":
            raise ConfigError("self_play is for ppo and recurrent_ppo")


def self_play(config: TrainConfig, console: Console | None = None) -> TrainResult:
    """Train both sides.

    Args:
        config: as given, with `self_play=True`; `total_timesteps` are those of each side.
        console: is told how the final policies play each other, if `eval_episodes` asks for games.

    Raises:
        AprlError: bad input, before any game is built; or an output that cannot be written.
        Interrupted: by SIGINT or SIGTERM; `resume_self_play` goes on.
    """
    config = with_types(config)
    check_self_play(config)
    directory = RunDirectory.create(config, {})
    write_json(directory.path / SELF_PLAY_FILE, asdict(params_of(config)))
    return _Rounds(config, directory, console).run()


def resume_self_play(
    run_dir: Path | str, console: Console | None = None, progress: bool | None = None
) -> TrainResult:
    """Go on with both sides, exactly where they were.

    Args:
        run_dir: of the run.
        console: see `self_play`.
        progress: show progress on the terminal; None does as the run's config says.

    Raises:
        RunError: no such run, or a file of it is damaged.
    """
    run_dir = Path(run_dir)
    record = read_json(run_dir / CONFIG_FILE)
    try:
        record.pop("fingerprints", None)
        config = with_types(TrainConfig.from_dict(record))
    except (ConfigError, AttributeError, TypeError) as error:
        raise RunError(f"{run_dir / CONFIG_FILE}: {error}") from None
    if (run_dir / FINAL_MODEL_DIR).exists() and (run_dir / EVALUATION_FILE).exists():
        raise RunError(f"{run_dir} is complete; there is nothing to resume")
    if progress is not None:
        config.progress = progress
    return _Rounds(config, RunDirectory(run_dir), console).run()


class _Rounds:
    """The rounds of one run directory."""

    def __init__(
        self, config: TrainConfig, directory: RunDirectory, console: Console | None
    ) -> None:
        self.config, self.directory, self.console = config, directory, console
        self.params = params_of(config)
        self.root = directory.path
        self.victim = victim_index(config.env_name)

    def run(self) -> TrainResult:
        """Everything that is not done yet."""
        with self.directory.at_work():
            if not (self.root / FINAL_MODEL_DIR).exists():
                self._train()
            scores = self._evaluate()
        return TrainResult(self.root, self.root / FINAL_MODEL_DIR, None, scores)

    def _train(self) -> None:
        sides = [self._open(side) for side in (0, 1)]
        done = sum(run.learner.num_timesteps for run in sides)
        self.directory.continue_from(done, max(run.directory.wall_time_s for run in sides))
        display = ProgressDisplay(
            2 * self.config.total_timesteps, done, enabled=self.config.progress
        )
        try:
            with contextlib.ExitStack() as stack:
                sessions = [
                    stack.enter_context(
                        incremental(
                            run.learner,
                            self.config.total_timesteps,
                            _SideCallback(run, display, sides[1 - side]),
                            resume=run.learner.num_timesteps > 0,
                            change_total=True,
                            log_interval=1,
                        )
                    )
                    for side, run in enumerate(sides)
                ]
                while self._next_turn(sides) is not None:
                    self._turn(sides, sessions)
        finally:
            display.close()
        # The victim's last: where it is, the training is complete.
        for side, name in ((1 - self.victim, OPPONENT_MODEL_DIR), (self.victim, FINAL_MODEL_DIR)):
            sides[side].save_policy(sides[side].run_dir / FINAL_MODEL_DIR)
            sides[side].save_policy(self.root / name)
        self.directory.steps = sum(run.learner.num_timesteps for run in sides)

    def _open(self, side: int) -> TrainingRun:
        path = self.root / f"side{side}"
        directory = RunDirectory(path)
        config = side_config(self.config, side, str(self.root)).resolve()
        if not path.exists():
            path.mkdir()
            write_json(path / CONFIG_FILE, config.to_dict())
        directory.signals = self.directory.signals
        for checkpoint in directory.checkpoints():
            with contextlib.suppress(CheckpointError):
                met = load_state(checkpoint).get("config", {})  # the opponents of its round
                known = {k: met[k] for k in ("embed_types", "embed_paths") if k in met}
                return TrainingRun(replace(config, **known), directory, checkpoint)
        return TrainingRun(config, directory)

    def _rounds_of(self, run: TrainingRun) -> int:
        """Rounds that a side has completed."""
        if run.learner.num_timesteps >= self.config.total_timesteps:
            return -(-self.config.total_timesteps // self.params.round_timesteps)
        return run.learner.num_timesteps // self.params.round_timesteps

    def _next_turn(self, sides: list[TrainingRun]) -> int | None:
        """Whose turn it is; None at the end."""
        total = self.config.total_timesteps
        left = [side for side in (0, 1) if sides[side].learner.num_timesteps < total]
        if not left:
            return None
        return min(left, key=lambda side: (self._rounds_of(sides[side]), side))

    def _turn(self, sides: list[TrainingRun], sessions: list[IncrementalSession]) -> None:
        side = self._next_turn(sides)
        assert side is not None
        run, other = sides[side], sides[1 - side]
        number = self._rounds_of(run)
        self._meet(run, other, number, side)
        target = min((number + 1) * self.params.round_timesteps, self.config.total_timesteps)
        set_global_random_state(run._random_state)
        sessions[side].step(max(1, target - run.learner.num_timesteps))
        run._random_state = global_random_state()
        if run.stopping and run.learner.num_timesteps < target:
            run.save_checkpoint()
            self.directory.steps = sum(r.directory.steps for r in sides)
            self.directory.stop_if_asked()
        run.save_policy(run.run_dir / SNAPSHOTS_DIR / f"{number:05d}")
        run.take_snapshot()
        run.save_checkpoint()
        self.directory.steps = sum(r.directory.steps for r in sides)
        self.directory.write_status("running")
        if run.stopping:
            self.directory.stop_if_asked()

    def _meet(self, run: TrainingRun, other: TrainingRun, number: int, side: int) -> None:
        """Draw the opponents of a round; those of a round that goes on are kept."""
        snapshots = sorted((other.run_dir / SNAPSHOTS_DIR).glob("[0-9]*"))
        if not snapshots:
            return  # the other side's turn has not come yet
        newest = snapshots[-max(1, round(self.params.window * len(snapshots))) :]
        draws, actions = np.random.SeedSequence(
            self.config.seed, spawn_key=(_OPPONENTS_STREAM, side, number)
        ).spawn(2)
        rng = np.random.default_rng(draws)
        chosen = [str(newest[i]) for i in rng.integers(len(newest), size=self.params.members)]
        if run.config.embed_paths != chosen:
            run.exchange_opponents(["ppo"] * len(chosen), chosen, actions)

    def _evaluate(self) -> dict[str, Any]:
        episodes = self.config.eval_episodes
        if not episodes:
            return {}
        score = evaluate_against(
            self.config,
            self.victim,
            ("ppo", str(self.root / FINAL_MODEL_DIR)),
            Opponent("opponent", "ppo", str(self.root / OPPONENT_MODEL_DIR)),
            self.directory.stop_if_asked,
        )
        scores = {"after": {"opponent": score}}
        write_json(self.root / EVALUATION_FILE, scores_to_json(scores))
        if self.console is not None:
            self.console.print(f"victim wins {score.win_rate(self.victim)}")
            self.console.print(f"opponent wins {score.win_rate(1 - self.victim)}")
        return scores["after"]


class _SideCallback(RunCallback):
    """Shows the progress of both sides as one."""

    def __init__(self, run: TrainingRun, display: ProgressDisplay, other: TrainingRun) -> None:
        super().__init__(run, display)
        self._other = other

    def _show(self, status: str | None = None) -> None:
        steps = self.num_timesteps + self._other.learner.num_timesteps
        side = self._run.config.agent_idx
        text = None if status is None else f"side {side} {status}"
        self._display.update(steps, text)
