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
        Interrupted: by SIGINT or SIGTERM, with a checkpoint saved.
    """
    if config.adversaries is not None:
        config = embed_best_adversary(config)
    return _finish(start_run(config), console)


def resume(run_dir: Path | str, console: Console | None = None) -> TrainResult:
    """Continue an interrupted run from its last checkpoint; see `train`."""
    return _finish(resume_run(run_dir), console)


def _finish(run: TrainingRun, console: Console | None) -> TrainResult:
    config = run.config
    record = run.run_dir / EVALUATION_FILE
    load = config.load_policy
    before = None
    if config.eval_episodes and load["path"] is not None:
        if record.exists():
            before = scores_from_json(read_json(record)["before"])
        else:
            before = evaluate(config, load["type"], load["path"])
            write_json(record, {"before": scores_to_json(before)})
    policy_dir = run.train()
    after = evaluate(config, "ppo", policy_dir) if config.eval_episodes else {}
    if after:
        saved = {"after": scores_to_json(after)}
        if before is not None:
            saved["before"] = scores_to_json(before)
        write_json(record, saved)
        if console is not None:
            console.print(comparison_table(config, before, after))
    return TrainResult(run.run_dir, policy_dir, before, after)


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
        if made.fullmatch(run.name)
        and (run / CHECKPOINT_DIR).is_dir()
        and not (run / FINAL_MODEL_DIR).exists()
    ]
    if not candidates:
        raise RunError(f"no unfinished run named {exp_name!r} with a checkpoint in {root_dir}")
    return max(candidates, key=lambda run: run.name)


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
