"""Heat-maps of who beats whom: `python -m aprl.visualize.scores SCORES.json --out FIGURES`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aprl.cli import ArgumentParser, run_cli
from aprl.errors import ConfigError, RunError
from aprl.multi.league import WHAT, Payoff, payoff
from aprl.multi.play import read_scores, scores_frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PALETTE = "Blues"
_CELL = (1.25, 0.55)  # inches
_LETTER = 0.09  # inches, of labels; those below are turned by 30 degrees


def heatmap(table: Payoff, palette: str = _PALETTE) -> "Figure":
    """Victims as rows, opponents as columns; per cell the percentage and its 95 % interval.

    The most extreme cell of each row has a red border: where the opponents win most, or the victim
    least.

    Args:
        table: see `aprl.multi.league.payoff`.
        palette: of matplotlib.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    cells = _cells(table)
    percent = cells[..., 0]
    rows, columns = percent.shape
    beside, below = (
        _LETTER * max(map(len, map(str, names))) for names in (table.rate.index, table.rate.columns)
    )
    size = (2.5 + beside + _CELL[0] * columns, 1.5 + below / 2 + _CELL[1] * rows)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(percent, cmap=palette, vmin=-10, vmax=100, aspect="auto")
    figure.colorbar(image, ax=axes, label=f"{table.what} (%)")
    axes.set_xticks(range(columns), table.rate.columns, rotation=30, ha="right")
    axes.set_yticks(range(rows), table.rate.index)
    axes.set_xlabel("opponent")
    axes.set_ylabel("victim")
    axes.set_title(table.env_name)
    for row in range(rows):
        for column in range(columns):
            rate, low, high = cells[row, column]
            text = "" if np.isnan(rate) else f"{rate:.0f}\n[{low:.0f}, {high:.0f}]"
            dark = percent[row, column] > 55
            axes.text(
                column, row, text, ha="center", va="center", fontsize=8,
                color="white" if dark else "black",
            )  # fmt: skip
        for column in _most_extreme(table.what, percent[row]):
            edge = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="red", lw=2)
            axes.add_patch(edge)
    return figure


def _cells(table: Payoff) -> np.ndarray:
    """Rate, low and high of each cell in percent, `(rows, columns, 3)`."""
    return 100 * np.stack([p.to_numpy(float) for p in (table.rate, table.low, table.high)], -1)


def _most_extreme(what: str, row: np.ndarray) -> Sequence[int]:
    if what == "ties" or np.isnan(row).all():
        return ()
    best = np.nanmin(row) if what == "victim wins" else np.nanmax(row)
    return np.flatnonzero(np.isclose(row, best)).tolist()


def save_heatmaps(
    scores: Path | str, out: Path | str, what: str = WHAT[0], suffix: str = "png"
) -> list[Path]:
    """Draw one heat-map per game of a scores' file.

    Args:
        scores: see `aprl.multi.play.ScoresFile`.
        out: directory for the figures.
        what: "opponent wins", "victim wins" or "ties".
        suffix: file format, of matplotlib.

    Raises:
        RunError: no scores in the file.
    """
    frame = scores_frame(read_scores(scores))
    if frame.empty:
        raise RunError(f"{scores} has no scores")
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for env_name in frame["env_name"].unique():
        path = directory / f"{env_name.replace('/', '-')}-{what.replace(' ', '_')}.{suffix}"
        heatmap(payoff(frame, env_name, what)).savefig(path, dpi=150)
        written.append(path)
    return written


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; see `--help`."""
    parser: Any = ArgumentParser(
        prog="python -m aprl.visualize.scores",
        description="Draw a heat-map per game of the scores of match-ups.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("scores", help="scores.json of aprl.multi.score")
    parser.add_argument("--out", default="figures", help="directory for the figures")
    parser.add_argument("--what", default=WHAT[0], choices=WHAT, help="what the cells say")
    parser.add_argument("--format", default="png", help="png, pdf or svg")
    arguments = parser.parse_args(argv)
    if arguments.format not in ("png", "pdf", "svg"):
        raise ConfigError(f"--format must be png, pdf or svg, got {arguments.format}")
    for path in save_heatmaps(arguments.scores, arguments.out, arguments.what, arguments.format):
        print(path)
    return 0


if __name__ == "__main__":
    run_cli(main)
