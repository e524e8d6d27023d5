"""Train an adversary, a victim or a hardened victim: `python -m aprl.train with [config] ...`.

`train` is the function behind the command; it takes a `TrainConfig` and knows nothing of Sacred.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from aprl.configs.checks import require_nonempty, with_types
from aprl.configs.train import NAMED_CONFIGS
from aprl.errors import ConfigError, RunError
from aprl.experiment import (
    RESUME,
    CommandExperiment,
    as_plain,
    command_line,
    output,
    user_errors,
)
from aprl.files import require_path, write_json
from aprl.highest_win_rate import Best
from aprl.locks import is_locked
from aprl.runs import (
    CHECKPOINT_DIR,
    CONFIG_FILE,
    EVALUATION_FILE,
    FINAL_MODEL_DIR,
    STATUS_FILE,
)
from aprl.scoring import Score
from aprl.training.config import TrainConfig
from aprl.training.defences import Alternating, defend, make_defence, victim_of
from aprl.training.evaluate import (
    comparison_table,
    conclusions,
    evaluate,
    read_scores,
    scores_to_json,
)
from aprl.training.run import RolloutObserver, TrainingRun, resume_run, start_run
from aprl.training.run_directory import RunDirectory, read_progress, read_run_config
from aprl.training.used_policies import check_against_game, require_unchanged

WEAK = 0.3  # win rate below which an adversary is hardly worth defending against


@dataclass(frozen=True)
class TrainResult:
    """What a run left behind.

    Attributes:
        run_dir: the run directory.
        policy_dir: the final policy, `<run_dir>/final_model`.
        before: scores by opponent's role before training; None unless a policy was fine-tuned.
        after: scores after training; empty unless `eval_episodes` asked for games.
    """

    run_dir: Path
    policy_dir: Path
    before: dict[str, Score] | None
    after: dict[str, Score]


def choose_opponents(config: TrainConfig, console: Console | None = None) -> TrainConfig:
    """Fill in whom the victim is defended against, if the config asks for a defence.

    A config that names `adversaries` and no defence means `defence=single`.

    Args:
        config: as given, not resolved.
        console: is told what was looked up.

    Raises:
        ConfigError: contradictory entries, or a defence without a victim.
        RunError: no adversary was found.
    """
    config = with_types(config)
    require_nonempty(config, ("adversaries", "root_dir", "exp_name", "zoo_dir"))
    if config.defence is None:
        if config.defence_params:
            raise ConfigError("defence_params was given without defence")
        if config.adversaries is None:
            return config
        config = replace(config, defence="single")
    assert config.defence is not None
    sparring = make_defence(config.defence, config.defence_params).sparring(config)
    chosen = defend(config, sparring)
    if console is not None and sparring.best is not None:
        _announce(console, config, sparring.best)
    return chosen


def _announce(console: Console, config: TrainConfig, best: Best) -> None:
    console.print(f"victim: {victim_of(config)[1]}", soft_wrap=True)
    console.print(
        f"adversary: {best.policy_dir}, which won {best.win_rate} of its last training games",
        soft_wrap=True,
    )
    if best.win_rate.rate < WEAK:
        console.print("warning: this adversary is weak; there is little to defend against")


def train(
    config: TrainConfig, console: Console | None = None, on_rollout: RolloutObserver | None = None
) -> TrainResult:
    """Run a training from its config to its final policy and, if asked, its table.

    Args:
        config: as given, not resolved; `defence=alternating` is for `aprl.alternating`.
        console: where the table is printed; None prints nothing.
        on_rollout: called after each rollout; not in an alternating defence, which is several runs.

    Raises:
        AprlError: bad input, before any environment is built; or an output that cannot be written.
        Interrupted: by SIGINT or SIGTERM; `resume` goes on, in the training as in the evaluations.
    """
    if config.defence == Alternating.name:
        from aprl.alternating import alternate

        return alternate(config, console)
    if config.self_play:
        from aprl.self_play import self_play

        return self_play(config, console)
    run = start_run(choose_opponents(config, console))
    run.on_rollout = on_rollout
    return finish(run.config, run.directory, run, console)


def resume(
    run_dir: Path | str,
    console: Console | None = None,
    progress: bool | None = None,
    on_rollout: RolloutObserver | None = None,
) -> TrainResult:
    """Continue an interrupted run, from its last checkpoint or in its evaluation; see `train`.

    Args:
        run_dir: of the run.
        console: see `train`.
        progress: show progress on the terminal; None does as the run's config says.
        on_rollout: see `train`.

    Raises:
        RunError: there is nothing to continue, or something that it needs is damaged or changed.
    """
    from aprl.alternating import ROUNDS_FILE, resume_rounds
    from aprl.self_play import SELF_PLAY_FILE, resume_self_play

    run_dir = require_path(run_dir, "the run directory")
    if not run_dir.is_dir():
        raise RunError(f"there is no run directory {run_dir}")
    if (run_dir / ROUNDS_FILE).exists():
        return resume_rounds(run_dir, console, progress)
    if (run_dir / SELF_PLAY_FILE).exists():
        return resume_self_play(run_dir, console, progress)
    config, recorded = read_run_config(run_dir)
    if not _lacks_evaluation(run_dir, config):
        run = resume_run(run_dir, progress)
        run.on_rollout = on_rollout
        return finish(run.config, run.directory, run, console)
    directory = RunDirectory(run_dir)
    require_unchanged(config, recorded, run_dir)
    directory.continue_from(*read_progress(run_dir))
    config.progress = config.progress if progress is None else progress
    return finish(config, directory, None, console)


def _lacks_evaluation(run_dir: Path, config: TrainConfig) -> bool:
    """Whether a run is trained, but the games after the training are not played."""
    trained = (run_dir / FINAL_MODEL_DIR).is_dir()
    return bool(
        trained and config.eval_episodes and "after" not in read_scores(run_dir / EVALUATION_FILE)
    )


def finish(
    config: TrainConfig, directory: RunDirectory, run: TrainingRun | None, console: Console | None
) -> TrainResult:
    """Evaluate, train and evaluate; without a run to train, only what is missing of the rest."""
    record, load = directory.path / EVALUATION_FILE, config.load_policy
    stop = directory.stop_if_asked
    with directory.at_work():
        scores = read_scores(record)
        scores.pop("after", None)
        if config.eval_episodes and load["path"] is not None and "before" not in scores:
            scores["before"] = evaluate(config, load["type"], load["path"], stop, "before")
            write_json(record, scores_to_json(scores))
        policy_dir = directory.path / FINAL_MODEL_DIR if run is None else run.train()
        if config.eval_episodes:
            scores["after"] = evaluate(config, "ppo", policy_dir, stop)
            write_json(record, scores_to_json(scores))
    before, after = scores.get("before"), scores.get("after", {})
    if after and console is not None:
        console.print(comparison_table(config, before, after))
        for sentence in conclusions(config, before or {}, after):
            console.print(sentence, soft_wrap=True)
    return TrainResult(directory.path, policy_dir, before, after)


def newest_unfinished(root_dir: str) -> Path:
    """The run that `resume=True` means: the newest in `root_dir` that can be continued.

    Raises:
        RunError: there is none.
    """
    candidates = [
        run
        for run in Path(root_dir).glob("*")
        if (run / CONFIG_FILE).is_file() and is_unfinished(run) and not is_locked(run)
    ]
    if not candidates:
        raise RunError(f"no unfinished run in {root_dir} that no process is at work on")
    return max(candidates, key=lambda run: run.name)  # names begin with the time


def is_unfinished(run: Path) -> bool:
    """Whether there is something left to do in a run directory, and a way to do it."""
    from aprl.alternating import ROUNDS_FILE, rounds_are_complete

    try:
        if (run / ROUNDS_FILE).exists():
            return not rounds_are_complete(run)
        if (run / FINAL_MODEL_DIR).exists():
            return _lacks_evaluation(run, read_run_config(run)[0])
    except RunError:
        return False
    return (run / CHECKPOINT_DIR).is_dir() or (run / STATUS_FILE).exists()


def _checked_root(values: dict[str, Any]) -> Path:
    """Check a config before anything is recorded; the root of the run that it describes."""
    resumed = values.pop("resume")
    config = with_types(TrainConfig.from_dict(values))
    root = require_path(config.root_dir, "root_dir")
    if resumed is not None:
        return root if resumed is True else require_path(str(resumed), "resume").parent
    if config.defence == Alternating.name:
        make_defence(config.defence, config.defence_params)
    elif config.self_play:
        from aprl.self_play import check_self_play

        check_self_play(config)
    else:
        check_against_game(choose_opponents(config).resolve())
    return root


train_experiment = CommandExperiment(
    "train", TrainConfig, NAMED_CONFIGS, extra=RESUME, checked_root=_checked_root
)


@train_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Train as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        resumed = values.pop("resume")
        config = with_types(TrainConfig.from_dict(values))
        console = output()
        if resumed is None:
            result = train(config, console)
        else:
            run = newest_unfinished(config.root_dir) if resumed is True else str(resumed)
            result = resume(run, console, progress=config.progress)
        console.print(f"policy: {result.policy_dir}", soft_wrap=True)
        return str(result.policy_dir)


def main() -> None:
    """Command line."""
    command_line(train_experiment, default_root="data/baselines", argv=sys.argv)


if __name__ == "__main__":
    main()
