"""Train an adversary, a victim or a hardened victim: `python -m aprl.train with [config] ...`.

`train` is the function behind the command; it takes a `TrainConfig` and knows nothing of Sacred.
"""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from aprl.configs.checks import with_types
from aprl.configs.train import NAMED_CONFIGS
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError
from aprl.experiment import as_plain, command_line, new_experiment, output, user_errors
from aprl.files import read_json, write_json
from aprl.highest_win_rate import best_policies
from aprl.policies.loader import resolve_policy_directory
from aprl.policies.store import fingerprint
from aprl.runs import CHECKPOINT_DIR, FINAL_MODEL_DIR
from aprl.scoring import Score
from aprl.training.config import TrainConfig
from aprl.training.evaluate import (
    comparison_table,
    evaluate,
    scores_from_json,
    scores_to_json,
)
from aprl.training.run import TrainingRun, resume_run, start_run

EVALUATION_FILE = "evaluation.json"


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


def embed_best_adversary(config: TrainConfig) -> TrainConfig:
    """Look up the best adversary for the loaded victim, and embed it.

    The victim is the loaded policy; its adversary is searched in the tree `config.adversaries`
    by path, or failing that by the victim's weights, so that trees and victims may move.

    Raises:
        ConfigError: no victim is loaded.
        RunError: no such tree, or it holds no adversary for this victim.
    """
    config = with_types(config)
    assert config.adversaries is not None
    kind, path = config.load_policy.get("type") or "ppo", config.load_policy.get("path")
    if path is None:
        raise ConfigError("adversaries needs a victim to defend: set load_policy.type and .path")
    victim = victim_index(config.env_name)
    directory = resolve_policy_directory(kind, str(path), config.env_name, victim, config.zoo_dir)
    best = best_policies(config.adversaries).lookup(
        config.env_name,
        victim,
        str(path),
        fingerprint=None if directory is None else fingerprint(directory),
    )
    return replace(
        config,
        embed_index=1 - victim,
        embed_type=None,
        embed_path=None,
        embed_types=["ppo"],
        embed_paths=[str(best.policy_dir)],
    )


def train(config: TrainConfig, console: Console | None = None) -> TrainResult:
    """Run a training from its config to its final policy and, if asked, its table.

    Args:
        config: as given, not resolved.
        console: where the table is printed; None prints nothing.

    Raises:
        AprlError: bad input, before any environment is built; or an output that cannot be written.
        Interrupted: by SIGINT or SIGTERM; `resume` goes on, in the training as in the evaluations.
    """
    if config.adversaries is not None:
        config = embed_best_adversary(config)
    run = start_run(config)
    return _finish(run.config, run.directory, run, console)


def resume(
    run_dir: Path | str, console: Console | None = None, progress: bool | None = None
) -> TrainResult:
    """Continue an interrupted run, from its last checkpoint or in its evaluation; see `train`.

    Args:
        run_dir: of the run.
        console: see `train`.
        progress: show progress on the terminal; None does as the run's config says.

    Raises:
        RunError: there is nothing to continue, or something that it needs is damaged or changed.
    """
    config, recorded = read_run_config(run_dir)
    run_dir = Path(run_dir)
    if not _lacks_evaluation(run_dir, config):
        run = resume_run(run_dir, progress)
        return _finish(run.config, run.directory, run, console)
    directory = RunDirectory(run_dir)
    require_unchanged(config, recorded, run_dir)
    directory.continue_from(*read_progress(run_dir))
    config.progress = config.progress if progress is None else progress
    return _finish(config, directory, None, console)


def _lacks_evaluation(run_dir: Path, config: TrainConfig) -> bool:
    """Whether a run is trained, but the games after the training are not played."""
    trained = (run_dir / FINAL_MODEL_DIR).is_dir()
    return bool(
        trained and config.eval_episodes and "after" not in read_scores(run_dir / EVALUATION_FILE)
    )


def _finish(
    config: TrainConfig, directory: RunDirectory, run: TrainingRun | None, console: Console | None
) -> TrainResult:
    """Evaluate, train and evaluate; without a run to train, only what is missing of the rest."""
    record, load = directory.path / EVALUATION_FILE, config.load_policy
    stop = directory.stop_if_asked
    with directory.at_work():
        scores = read_scores(record)
        scores.pop("after", None)
        if config.eval_episodes and load["path"] is not None and "before" not in scores:
            scores["before"] = evaluate(config, load["type"], load["path"], stop)
            write_json(record, scores_to_json(scores))
        policy_dir = directory.path / FINAL_MODEL_DIR if run is None else run.train()
        if config.eval_episodes:
            scores["after"] = evaluate(config, "ppo", policy_dir, stop)
            write_json(record, scores_to_json(scores))
    before, after = scores.get("before"), scores.get("after", {})
    if after and console is not None:
        console.print(comparison_table(config, before, after))
    return TrainResult(directory.path, policy_dir, before, after)


def newest_unfinished(root_dir: str, exp_name: str) -> Path:
    """The run that `resume=True` means: the newest resumable one of this name in `root_dir`.

    Raises:
        RunError: there is none.
    """
    # As `new_run_dir` makes them; another experiment's name may begin like this one's.
    made = re.compile(rf"\d{{8}}_\d{{6}}-{re.escape(exp_name.replace('/', '_'))}(-\d+)?")
    candidates = [
        run
        for run in Path(root_dir).glob("*")
        if made.fullmatch(run.name) and _is_unfinished(run) and not is_locked(run)
    ]
    if not candidates:
        raise RunError(
            f"no unfinished run named {exp_name!r} in {root_dir} that no process is at work on"
        )
    return max(candidates, key=lambda run: run.name)


def _is_unfinished(run: Path) -> bool:
    if not (run / FINAL_MODEL_DIR).exists():
        return (run / CHECKPOINT_DIR).is_dir() or (run / STATUS_FILE).exists()
    try:
        return _lacks_evaluation(run, read_run_config(run)[0])
    except RunError:
        return False


train_experiment = new_experiment(
    "train", {**TrainConfig().to_dict(), "resume": None}, NAMED_CONFIGS
)


@train_experiment.main
def _run(_config: dict[str, Any]) -> str:
    """Train as configured; `print_config` shows every option."""
    with user_errors():
        values = as_plain(_config)
        resumed = values.pop("resume")
        config = with_types(TrainConfig.from_dict(values))
        console = output()
        if resumed:
            path = str(resumed)
            if resumed is True:
                path = str(newest_unfinished(config.root_dir, config.exp_name))
            result = resume(path, console)
        else:
            result = train(config, console)
        console.print(f"policy: {result.policy_dir}", soft_wrap=True)
        return str(result.policy_dir)


def main() -> None:
    """Command line."""
    command_line(train_experiment, default_root="data/baselines", argv=sys.argv)


if __name__ == "__main__":
    main()
