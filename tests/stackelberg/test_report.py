"""What the comparison leaves on disk."""

import pandas as pd

from aprl.stackelberg.comparison import curves_table, make_jobs, run_jobs
from aprl.stackelberg.methods import CONFIGS, FAMILIES
from aprl.stackelberg.report import curves_figure, printed_table, write_report


def test_report_holds_every_world_and_method(tmp_path):
    budgets = {"simple_mdp_1": 60, "trap": 50}
    outcomes = run_jobs(make_jobs(["mal_tabular", "mal_fixed", "psrl"], budgets, range(2)), 1)
    summary = write_report(tmp_path / "report", outcomes, "mal_tabular")
    directory = tmp_path / "report"
    assert len(pd.read_csv(directory / "runs.csv")) == 12
    assert len(pd.read_csv(directory / "curves.csv")) == 6 * 101
    assert len(pd.read_csv(directory / "summary.csv")) == 6
    for world in budgets:
        assert (directory / f"{world}.png").read_bytes()[:4] == b"\x89PNG"
        assert (directory / f"{world}.pdf").read_bytes()[:4] == b"%PDF"
    page = (directory / "report.html").read_text(encoding="utf-8")
    for name in (*budgets, "mal_tabular", "mal_fixed", "psrl"):
        assert name in page
    assert page.count("data:image/png;base64,") == 2 and "(2/2)" in page
    assert list(summary.world.cat.categories) == list(budgets)
    assert printed_table(summary).row_count == 6


def test_every_family_has_a_panel_with_the_reference_in_it():
    methods = ["mal_tabular", "mal_fixed", "psrl", "ucbvi", "dyna_q"]
    curves = curves_table(run_jobs(make_jobs(methods, {"trap": 50}, range(2)), 1))
    figure = curves_figure(curves, "trap", "mal_tabular")
    shown = {
        axes.get_title(): {text.get_text() for text in axes.get_legend().get_texts()}
        for axes in figure.axes
    }
    assert shown == {
        "tabular MAL": {"mal_fixed", "mal_tabular"},
        "Q-learning and Dyna-Q": {"dyna_q", "mal_tabular"},
        "UCBVI, PSRL and PPO": {"psrl", "ucbvi", "mal_tabular"},
    }
    assert set(FAMILIES) == set(CONFIGS)
