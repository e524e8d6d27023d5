"""The comparison on paper: learning curves as PNG and PDF, an HTML page, a table to print."""

import base64
import html
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from aprl.files import atomic_path
from aprl.stackelberg.comparison import curves_table, runs_table, summary_table
from aprl.stackelberg.finished import Outcome
from aprl.stackelberg.methods import FAMILIES, METHODS

REPORT_FILE = "report.html"


def curves_figure(curves: pd.DataFrame, world: str, reference: str) -> Figure:
    """Mean return over the optimum by real samples, with 95 % intervals, of one world.

    One panel per family of methods, `reference` in each of them.

    Args:
        curves: from `curves_table`.
        world: name.
        reference: method.
    """
    here = curves[curves.world == world]
    by_method = {str(method): curve for method, curve in here.groupby("method")}
    panels: dict[str, list[str]] = {}
    for method in by_method:
        panels.setdefault(FAMILIES[METHODS[method].kind], []).append(method)
    rows = math.ceil(len(panels) / 2)
    columns = min(2, len(panels))
    figure = Figure(figsize=(6.5 * columns, 4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (family, methods) in zip(grid, panels.items(), strict=False):
        colours = (f"C{index}" for index in itertools.count())
        for method in [*(m for m in methods if m != reference), reference]:
            curve = by_method[method]
            colour = "black" if method == reference else next(colours)
            axes.plot(curve.samples, curve["mean"], color=colour, label=method, linewidth=1.4)
            axes.fill_between(curve.samples, curve.low, curve.high, color=colour, alpha=0.1)
        axes.axhline(1.0, color="black", linewidth=0.6)
        axes.set(title=family, ylim=(-0.05, 1.08))
        axes.legend(fontsize=7)
    for axes in grid[len(panels) :]:
        axes.remove()
    figure.suptitle(world)
    figure.supxlabel("real samples")
    figure.supylabel("return / optimum")
    return figure


def _samples(value: float) -> str:
    return f"{value:,.0f}" if np.isfinite(value) else "never"


def printed_table(summary: pd.DataFrame) -> Table:
    """For the terminal; a star marks medians below the default method's."""
    table = Table(title="real samples to stay within 1 % of the optimum")
    for column in ("world", "method", "solved [95 %]", "median", "90 %", "final/optimum", "least"):
        table.add_column(column)
    world = None
    for row in summary.to_dict("records"):
        if world is not None and row["world"] != world:
            table.add_section()
        table.add_row(
            "" if row["world"] == world else row["world"],
            row["method"] + (" *" if row["beats_default"] else ""),
            row["solved"],
            _samples(row["median"]),
            _samples(row["p90"]),
            f"{row['final_mean']:.3f}",
            f"{row['final_min']:.3f}",
        )
        world = row["world"]
    return table


def _html_table(summary: pd.DataFrame, world: str) -> str:
    here = summary[summary.world == world]
    shown = pd.DataFrame(
        {
            "method": here.method + here.beats_default.map({True: " *", False: ""}),
            "solved [95 %]": here.solved,
            "median samples": here["median"].map(_samples),
            "90 % quantile": here.p90.map(_samples),
            "final/optimum, mean": here.final_mean.map("{:.3f}".format),
            "least": here.final_min.map("{:.3f}".format),
            "guarantee": here.claim,
        }
    )
    return shown.to_html(index=False, border=0)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Comparison of Stackelberg model-based RL</title>
<style>
body {{ font: 15px/1.5 sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-size: 13px; }}
td, th {{ padding: 0.15rem 0.7rem; text-align: left; border-bottom: 1px solid #ddd; }}
img {{ max-width: 100%; }}
</style></head><body>
<h1>Comparison of Stackelberg model-based RL</h1>
<p>{intro}</p>
{worlds}
</body></html>
"""


def write_report(directory: Path, outcomes: Sequence[Outcome], reference: str) -> pd.DataFrame:
    """Write runs.csv, summary.csv, curves.csv, a PNG and a PDF per world, and report.html.

    Args:
        directory: created if absent; files of the same names are replaced.
        outcomes: of all runs.
        reference: method whose medians the others are held against.

    Returns:
        The summary.
    """
    summary, curves = summary_table(outcomes, reference), curves_table(outcomes)
    tables = {"runs": runs_table(outcomes), "summary": summary, "curves": curves}
    for name, table in tables.items():
        with atomic_path(directory / f"{name}.csv") as staged:
            table.to_csv(staged, index=False)
    sections = []
    for world in summary.world.cat.categories:
        figure = curves_figure(curves, world, reference)
        for suffix in ("png", "pdf"):
            with atomic_path(directory / f"{world}.{suffix}") as staged:
                figure.savefig(staged, dpi=150)
        image = base64.b64encode((directory / f"{world}.png").read_bytes()).decode("ascii")
        sections.append(
            f"<h2>{html.escape(world)}</h2>\n"
            f'<img alt="learning curves" src="data:image/png;base64,{image}">\n'
            f"{_html_table(summary, world)}"
        )
    seeds = len({outcome.job.seed for outcome in outcomes})
    intro = (
        f"{seeds} seeds per method. A run is solved from the number of samples on from which its "
        "deployed policy stays within 1 % of the optimum, by exact evaluation, up to the end of "
        "the budget. Bands are 95 % Student intervals of the mean, brackets 95 % Wilson "
        f"intervals. A star marks a median below that of {html.escape(reference)}."
    )
    with atomic_path(directory / REPORT_FILE) as staged:
        staged.write_text(_PAGE.format(intro=intro, worlds="\n".join(sections)), encoding="utf-8")
    return summary
