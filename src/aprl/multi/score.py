"""Everybody against everybody: `python -m aprl.multi.score with victims=... opponents=... ...`.

`score_matchups` is the function behind the command; it returns a table.
"""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from aprl.configs.checks import with_types
from aprl.configs.multi_score import NAMED_CONFIGS
from aprl.errors import RunError
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import require_path, require_writable_directory
from aprl.locks import DirectoryLock
from aprl.multi.play import (
    Pairing,
    ScoresFile,
    pairings,
    play_all,
    scores_frame,
)
from aprl.multi.score_config import MatchupsConfig
from aprl.training.records import ProgressDisplay

if TYPE_CHECKING:
    import pandas as pd

SCORES_FILE = "scores.json"


def score_matchups(config: MatchupsConfig, console: Console | None = None) -> "pd.DataFrame":
    """Play all match-ups that are not played yet.

    Scores are written after each, so that nothing is lost when it is stopped: call it again with
    the same `save_path`.

    Args:
        config: see `MatchupsConfig`.
        console: is told where the scores are.

    Returns:
        See `aprl.multi.play.scores_frame`; match-ups of this config only.

    Raises:
        AprlError: bad input, before anything is played; or some match-ups failed, after the others
            were played and written.
    """
    wanted = pairings(config)
    path = scores_path(config)
    lock = DirectoryLock(require_writable_directory(path.parent))
    lock.acquire()
    try:
        file = ScoresFile(path)
        todo = [pairing for pairing in wanted if not file.known(pairing)]
        if console is not None:
            kept = len(wanted) - len(todo)
            played = f", {kept} of them played already" if kept else ""
            console.print(f"{len(wanted)} match-ups{played}; scores in {path}", soft_wrap=True)
        failed = _play(todo, config, file)
    finally:
        lock.release()
    if failed:
        pairing, why = failed[0]
        raise RunError(
            f"{len(failed)} of {len(wanted)} match-ups failed, the first, {pairing.key}, with: "
            f"{why}; save_path={path} plays them again"
        )
    keys = [pairing.key for pairing in wanted]
    return scores_frame(entry for entry in file.entries if entry["k"] in keys)


def scores_path(config: MatchupsConfig) -> Path:
    """Where the scores of a config go."""
    if config.save_path is not None:
        return Path(config.save_path)
    stamp = f"{datetime.now():%Y%m%d_%H%M%S}"
    return Path(config.root_dir) / config.name / stamp / SCORES_FILE


def _play(
    todo: Sequence[Pairing], config: MatchupsConfig, file: ScoresFile
) -> list[tuple[Pairing, str]]:
    display = ProgressDisplay(len(todo), enabled=config.progress, verb="scoring", unit="match-ups")
    done = 0

    def keep(pairing: Pairing, scores: dict[str, Any]) -> None:
        nonlocal done
        file.add(pairing, scores)
        done += 1
        display.update(done)

    try:
        return play_all(list(todo), config, keep)
    finally:
        display.close()


def matchups_table(frame: "pd.DataFrame") -> Table:
    """Wins of both sides, with counts and 95 % intervals."""
    table = Table(title=f"{len(frame)} match-ups, {frame['games'].sum():,} games")
    with_noise = bool(frame["noise"].notna().any())
    for column in (
        "game",
        "victim",
        "opponent",
        *(["noise"] * with_noise),
        "opponent wins",
        "victim wins",
        "ties",
    ):
        table.add_column(column, overflow="fold")
    for row in frame.to_dict("records"):
        cells = [
            row["env_name"],
            f"{row['victim_type']} {row['victim_path']}",
            f"{row['opponent_type']} {row['opponent_path']}",
        ]
        if with_noise:
            cells.append(f"{row['noise']:.3g}")
        for side in ("opponent", "victim"):
            rate, low, high = (100 * row[f"{side}_{part}"] for part in ("rate", "low", "high"))
            cells.append(
                f"{rate:.1f} % [{low:.1f}, {high:.1f}] ({row[f'{side}_wins']}/{row['games']})"
            )
        table.add_row(*cells, str(row["ties"]))
    return table


def _checked_root(values: dict[str, Any]) -> Path:
    config = with_types(MatchupsConfig.from_dict(values))
    pairings(config)
    return require_path(config.root_dir, "root_dir")


matchups_experiment = CommandExperiment(
    "multi_score", MatchupsConfig, NAMED_CONFIGS, checked_root=_checked_root
)


@matchups_experiment.main
def _run(_config: dict[str, Any]) -> list[dict[str, Any]]:
    """Score as configured; `print_config` shows every option."""
    with user_errors():
        config = with_types(MatchupsConfig.from_dict(as_plain(_config)))
        console = output()
        frame = score_matchups(config, console)
        console.print(matchups_table(frame))
        return [{str(k): v for k, v in row.items()} for row in frame.to_dict("records")]


def main() -> None:
    """Command line."""
    command_line(matchups_experiment, default_root="data/multi_score", argv=sys.argv)


if __name__ == "__main__":
    main()
