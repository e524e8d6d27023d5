"""What the comparison leaves on disk."""

import pandas as pd

from aprl.stackelberg.comparison import make_jobs, run_jobs
from aprl.stackelberg.report import printed_table, write_report


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
