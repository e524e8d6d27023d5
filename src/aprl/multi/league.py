"""League tables from the scores of match-ups: `python -m aprl.multi.league SCORES.json`.

Payoff matrices with intervals, ratings with uncertainty, and Nash averaging (Balduzzi et al.,
"Re-evaluating evaluation", NeurIPS 2018), which weighs players by how much they matter: copies of
one, or opponents that everybody beats, change nothing.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import LinearConstraint, linprog, minimize

from aprl.cli import ArgumentParser, run_cli
from aprl.errors import ConfigError, RunError
from aprl.multi.play import read_scores, scores_frame
from aprl.stats import Z_95

if TYPE_CHECKING:
    import pandas as pd

WHAT = ("opponent wins", "victim wins", "ties")
_COLUMNS = {"opponent wins": "opponent_wins", "victim wins": "victim_wins", "ties": "ties"}


@dataclass(frozen=True)
class Payoff:
    """How often something happens, victims as rows and opponents as columns.

    Attributes:
        env_name: the game.
        what: see `WHAT`.
        rate: fraction of games; NaN where nobody played.
        low: lower end of the 95 % interval.
        high: upper end.
    """

    env_name: str
    what: str
    rate: "pd.DataFrame"
    low: "pd.DataFrame"
    high: "pd.DataFrame"


@dataclass(frozen=True)
class NashAverage:
    """The maximum-entropy equilibrium of a zero-sum game, and what players score against it.

    Attributes:
        value: what the opponents gain in equilibrium, opponent's wins less victim's, per game.
        victims: per victim, `weight` in the equilibrium and `skill`, its score against the
            opponents' equilibrium, in [-1, 1].
        opponents: the same for opponents.
    """

    value: float
    victims: "pd.DataFrame"
    opponents: "pd.DataFrame"


def player_label(kind: str, path: str) -> str:
    """A short name: `zoo 1`, `zero`, or the last parts of a policy's path that tell it apart."""
    if kind in ("zero", "random"):
        return kind
    parts = [part for part in Path(path).parts if part != "final_model"]
    return f"{kind} {'/'.join(parts[-2:])}" if kind != "zoo" else f"zoo {path}"


def _labelled(frame: "pd.DataFrame", env_name: str) -> "pd.DataFrame":
    found = frame[frame["env_name"] == env_name].copy()
    if found.empty:
        raise RunError(f"no scores of {env_name}; there are {sorted(set(frame['env_name']))}")
    for side in ("victim", "opponent"):
        pairs = zip(found[f"{side}_type"], found[f"{side}_path"], strict=True)
        found[side] = [player_label(kind, path) for kind, path in pairs]
    if found.duplicated(["victim", "opponent"]).any():
        for side in ("victim", "opponent"):
            found[side] = found[f"{side}_type"] + " " + found[f"{side}_path"]
    if found.duplicated(["victim", "opponent"]).any():
        raise RunError(
            f"{env_name} was scored more than once for the same players (as with noise of several "
            "sizes); a league needs one score each"
        )
    return found


def payoff(frame: "pd.DataFrame", env_name: str, what: str = WHAT[0]) -> Payoff:
    """One game's matrix.

    Args:
        frame: see `aprl.multi.play.scores_frame`.
        env_name: environment id.
        what: one of `WHAT`.

    Raises:
        RunError: nobody played this game, or the same players more than once.
    """
    from aprl.stats import wilson_interval

    found = _labelled(frame, env_name)
    count = found[_COLUMNS[what]]
    side = {"opponent wins": "opponent", "victim wins": "victim"}.get(what)
    found["rate"] = count / found["games"]
    if side is None:
        intervals = [wilson_interval(c, n) for c, n in zip(count, found["games"], strict=True)]
        found["low"], found["high"] = zip(*intervals, strict=True)
    else:
        found["low"], found["high"] = found[f"{side}_low"], found[f"{side}_high"]
    order = {axis: list(dict.fromkeys(found[axis])) for axis in ("victim", "opponent")}
    parts = [
        found.pivot(index="victim", columns="opponent", values=part).reindex(
            index=order["victim"], columns=order["opponent"]
        )
        for part in ("rate", "low", "high")
    ]
    return Payoff(env_name, what, *parts)


def ratings(frame: "pd.DataFrame", env_name: str, seed: int = 0, most: int = 200) -> "pd.DataFrame":
    """Bayesian Bradley-Terry ratings of all players of a game, by `openskill`.

    Each match-up enters with at most `most` games in its proportions of wins and ties, in random
    order. A policy that plays as victim and as opponent is rated as two players.

    Args:
        frame: see `aprl.multi.play.scores_frame`.
        env_name: environment id.
        seed: of the order.
        most: games per match-up.

    Returns:
        One row per player, best first: `player`, `side`, `rating`, `sigma` (standard deviation),
        `low` and `high` (95 %), `games` played in all.
    """
    import pandas as pd
    from openskill.models import BradleyTerryFull

    found = _labelled(frame, env_name)
    model = BradleyTerryFull(tau=0.0)
    players = {
        (side, name): model.rating(name=name)
        for side in ("victim", "opponent")
        for name in dict.fromkeys(found[side])
    }
    results = []
    for row in found.to_dict("records"):
        scale = min(1.0, most / row["games"])
        for ranks, count in (
            ([0, 1], row["victim_wins"]),
            ([1, 0], row["opponent_wins"]),
            ([0, 0], row["ties"]),
        ):
            results += [(row["victim"], row["opponent"], ranks)] * round(count * scale)
    for number in np.random.default_rng(seed).permutation(len(results)):
        victim, opponent, ranks = results[number]
        teams = [[players["victim", victim]], [players["opponent", opponent]]]
        [[players["victim", victim]], [players["opponent", opponent]]] = model.rate(
            teams, ranks=ranks
        )
    rows = [
        {
            "player": name,
            "side": side,
            "rating": player.mu,
            "sigma": player.sigma,
            "low": player.mu - Z_95 * player.sigma,
            "high": player.mu + Z_95 * player.sigma,
            "games": int(found.loc[found[side] == name, "games"].sum()),
        }
        for (side, name), player in players.items()
    ]
    return pd.DataFrame(rows).sort_values("rating", ascending=False, ignore_index=True)


def nash_average(frame: "pd.DataFrame", env_name: str) -> NashAverage:
    """The game between choosing a victim and choosing an opponent, in equilibrium.

    Raises:
        RunError: nobody played this game, or not everybody played everybody.
    """
    import pandas as pd

    wins = payoff(frame, env_name, "opponent wins").rate
    losses = payoff(frame, env_name, "victim wins").rate
    gains = (wins - losses).to_numpy()
    if np.isnan(gains).any():
        raise RunError(f"{env_name}: Nash averaging needs every victim against every opponent")
    value = _value(gains)
    theirs = max_entropy_equilibrium(gains.T, value)  # rows: opponents, who gain
    ours = max_entropy_equilibrium(-gains, -value)
    victims = pd.DataFrame({"weight": ours, "skill": -gains @ theirs}, index=wins.index)
    opponents = pd.DataFrame({"weight": theirs, "skill": gains.T @ ours}, index=wins.columns)
    return NashAverage(value, victims, opponents)


def _value(gains: np.ndarray) -> float:
    """Value to the column player of a zero-sum game `(rows, columns)`."""
    rows, columns = gains.shape
    # Mix the columns so that the least gain over rows, v, is greatest.
    cost = np.append(np.zeros(columns), -1.0)
    found = linprog(
        cost,
        A_ub=np.hstack([-gains, np.ones((rows, 1))]),
        b_ub=np.zeros(rows),
        A_eq=[np.append(np.ones(columns), 0.0)],
        b_eq=[1.0],
        bounds=[(0, None)] * columns + [(None, None)],
        method="highs",
    )
    return float(-found.fun)


def max_entropy_equilibrium(gains: np.ndarray, value: float) -> np.ndarray:
    """The most even of the row player's optimal mixtures, which is unique.

    Args:
        gains: of the row player, `(rows, columns)`.
        value: of the game to the row player.

    Returns:
        Weights `(rows,)`.
    """
    rows, columns = gains.shape
    slack = 1e-7
    feasible = linprog(
        np.zeros(rows),
        A_ub=-gains.T,
        b_ub=np.full(columns, slack - value),
        A_eq=[np.ones(rows)],
        b_eq=[1.0],
        bounds=[(0, 1)] * rows,
        method="highs",
    ).x
    tiny = 1e-12

    def negative_entropy(p: np.ndarray) -> float:
        return float(np.sum(p * np.log(np.maximum(p, tiny))))

    found = minimize(
        negative_entropy,
        feasible,
        jac=lambda p: np.log(np.maximum(p, tiny)) + 1,
        bounds=[(0, 1)] * rows,
        constraints=[
            LinearConstraint(np.ones((1, rows)), 1, 1),
            LinearConstraint(gains.T, value - 2 * slack, np.inf),
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    weights = np.clip(found.x, 0, None)
    worst = float((gains.T @ weights / weights.sum()).min())
    if not math.isfinite(worst) or worst < value - 1e-4:
        weights = feasible  # the optimiser left what is optimal
    return weights / weights.sum()


def _payoff_table(table: Payoff) -> Table:
    shown = Table(title=f"{table.env_name}: {table.what} in % [95 %]; victims are rows")
    shown.add_column("victim", overflow="fold")
    for column in table.rate.columns:
        shown.add_column(str(column), overflow="fold")
    parts = [100 * part.to_numpy(float) for part in (table.rate, table.low, table.high)]
    for name, *row in zip(table.rate.index, *parts, strict=True):
        cells = [
            "" if math.isnan(rate) else f"{rate:.1f} [{low:.1f}, {high:.1f}]"
            for rate, low, high in zip(*row, strict=True)
        ]
        shown.add_row(str(name), *cells)
    return shown


def _table(title: str, frame: "pd.DataFrame") -> Table:
    shown = Table(title=title)
    for column in frame.columns:
        shown.add_column(str(column), overflow="fold")
    for row in frame.itertuples(index=False):
        shown.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row))
    return shown


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; see `--help`."""
    parser: Any = ArgumentParser(
        prog="python -m aprl.multi.league",
        description="Payoffs, ratings and Nash averages from the scores of match-ups.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("scores", help="scores.json of aprl.multi.score")
    parser.add_argument("--env", help="environment id; all games unless given")
    parser.add_argument("--what", default=WHAT[0], choices=WHAT, help="of the payoff matrix")
    parser.add_argument("--plot", metavar="DIR", help="also draw heat-maps into this directory")
    arguments = parser.parse_args(argv)
    frame = scores_frame(read_scores(arguments.scores))
    if frame.empty:
        raise ConfigError(f"{arguments.scores} has no scores")
    console = Console(width=None if Console().is_terminal else 140)
    for env_name in [arguments.env] if arguments.env else frame["env_name"].unique():
        console.print(_payoff_table(payoff(frame, env_name, arguments.what)))
        console.print(_table(f"{env_name}: ratings", ratings(frame, env_name)))
        try:
            nash = nash_average(frame, env_name)
        except RunError as error:
            console.print(str(error))
            continue
        for side, players in (("victims", nash.victims), ("opponents", nash.opponents)):
            named = players.rename_axis("player").reset_index()
            console.print(_table(f"{env_name}: {side}, Nash averaging", named))
    if arguments.plot:
        from aprl.visualize.scores import save_heatmaps

        for path in save_heatmaps(arguments.scores, arguments.plot, arguments.what):
            console.print(str(path), soft_wrap=True)
    return 0


if __name__ == "__main__":
    run_cli(main)
