"""League tables: payoffs, ratings and Nash averaging on games with known answers."""

import json

import numpy as np
import pytest

from aprl.cli import run_cli
from aprl.errors import RunError
from aprl.multi.league import main, max_entropy_equilibrium, nash_average, payoff, ratings
from aprl.multi.play import read_scores, scores_frame
from aprl.visualize.scores import save_heatmaps

GAME = "aprl/RockPaperScissors-v0"  # the victim is player 0


def entry(victim, opponent, wins, losses, ties=0, game=GAME):
    return {
        "k": [game, "constant", victim, "constant", opponent],
        "v": {"win0": wins, "win1": losses, "ties": ties},
    }


def frame_of(*entries):
    return scores_frame(entries)


def rock_paper_scissors(copies=1):
    """Pure strategies; rock as opponent appears `copies` times."""
    names = ["rock", "paper", "scissors"]
    beats = {("paper", "rock"), ("rock", "scissors"), ("scissors", "paper")}
    entries = []
    for victim in names:
        for opponent in names:
            score = (100, 0, 0) if (victim, opponent) in beats else (0, 100, 0)
            score = (0, 0, 100) if victim == opponent else score
            for copy in range(copies if opponent == "rock" else 1):
                name = opponent if copy == 0 else f"{opponent}{copy}"
                entries.append(entry(victim, name, *score))
    return frame_of(*entries)


def test_scores_are_seen_from_both_sides():
    frame = frame_of(entry("a", "b", 30, 60, 10))
    row = frame.iloc[0]
    assert (row.victim_wins, row.opponent_wins, row.ties, row.games) == (30, 60, 10, 100)
    assert row.opponent_rate == 0.6
    assert row.opponent_low == pytest.approx(0.502, abs=1e-3)
    frame = frame_of(entry("a", "b", 30, 60, 10, game="multicomp/YouShallNotPassHumans-v1"))
    row = frame.iloc[0]
    assert (row.victim_path, row.victim_wins, row.opponent_wins) == ("b", 60, 30)


def test_intervals_of_early_stopping_are_kept():
    scores = entry("a", "b", 30, 60, 10)
    scores["v"]["interval1"] = [0.4, 0.8]
    row = scores_frame([scores]).iloc[0]
    assert (row.opponent_low, row.opponent_high) == (0.4, 0.8)


def test_payoffs_have_victims_as_rows():
    frame = frame_of(entry("a", "x", 1, 3), entry("a", "y", 2, 2), entry("b", "x", 4, 0))
    table = payoff(frame, GAME)
    assert list(table.rate.index) == ["constant a", "constant b"]
    np.testing.assert_array_equal(table.rate.to_numpy(), [[0.75, 0.5], [0.0, np.nan]])
    assert table.low.iat[0, 0] == pytest.approx(0.3006, abs=1e-3)
    ties = payoff(frame_of(entry("a", "x", 1, 2, 1)), GAME, "ties")
    assert ties.rate.iat[0, 0] == 0.25 and ties.low.iat[0, 0] > 0


def test_the_same_players_twice_are_refused():
    frame = frame_of(entry("a", "x", 1, 3), entry("a", "x", 2, 2))
    with pytest.raises(RunError, match="more than once"):
        payoff(frame, GAME)
    with pytest.raises(RunError, match="no scores of"):
        payoff(frame, "multicomp/SumoAnts-v1")


def test_ratings_order_players_and_know_how_sure_they_are():
    frame = frame_of(
        entry("strong", "x", 90, 10),
        entry("weak", "x", 20, 80),
        entry("seldom", "x", 2, 2),
    )
    table = ratings(frame, GAME)
    order = list(table[table.side == "victim"].player)
    assert order == ["constant strong", "constant seldom", "constant weak"]
    sigma = dict(zip(table.player, table.sigma, strict=True))
    assert sigma["constant seldom"] > 1.5 * sigma["constant strong"]
    strong, weak = (table[table.player == f"constant {n}"].iloc[0] for n in ("strong", "weak"))
    assert strong.low > weak.high
    assert ratings(frame, GAME).equals(table)


def test_a_cycle_has_an_even_equilibrium_of_value_zero():
    nash = nash_average(rock_paper_scissors(), GAME)
    assert nash.value == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(nash.victims.weight, 1 / 3, atol=1e-4)
    np.testing.assert_allclose(nash.opponents.weight, 1 / 3, atol=1e-4)
    np.testing.assert_allclose(nash.opponents.skill, 0, atol=1e-4)


def test_copies_of_a_player_change_nothing():
    nash = nash_average(rock_paper_scissors(copies=3), GAME)
    weights = nash.opponents.weight.to_numpy()
    rocks = [i for i, name in enumerate(nash.opponents.index) if "rock" in name]
    assert weights[rocks].sum() == pytest.approx(1 / 3, abs=1e-3)
    np.testing.assert_allclose(weights[rocks], 1 / 9, atol=1e-3)
    np.testing.assert_allclose(nash.victims.skill, 0, atol=1e-3)


def test_a_dominated_player_has_no_weight():
    frame = frame_of(
        entry("a", "x", 70, 30), entry("a", "y", 50, 50),
        entry("b", "x", 20, 80), entry("b", "y", 10, 90),
    )  # fmt: skip
    nash = nash_average(frame, GAME)
    assert nash.victims.weight.to_list() == pytest.approx([1, 0], abs=1e-6)
    assert nash.opponents.weight.to_list() == pytest.approx([0, 1], abs=1e-6)
    assert nash.value == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_equilibria_of_random_games_cannot_be_improved_on(seed):
    gains = np.random.default_rng(seed).uniform(-1, 1, (6, 9))
    entries = [entry(f"v{i}", f"o{j}", 0, 0) for i in range(6) for j in range(9)]
    for scores, gain in zip(entries, gains.ravel(), strict=True):
        scores["v"] = {"win0": round(500 * (1 - gain)), "win1": round(500 * (1 + gain)), "ties": 0}
    nash = nash_average(scores_frame(entries), GAME)
    assert nash.opponents.skill.max() <= nash.value + 1e-5
    assert (-nash.victims.skill).min() >= nash.value - 1e-5


def test_entropy_is_spread_where_it_costs_nothing():
    np.testing.assert_allclose(max_entropy_equilibrium(np.ones((4, 2)), 1.0), [0.25] * 4, atol=1e-5)


def test_a_hole_in_the_matrix_is_said():
    frame = frame_of(entry("a", "x", 1, 3), entry("a", "y", 2, 2), entry("b", "x", 4, 0))
    with pytest.raises(RunError, match="every victim against every opponent"):
        nash_average(frame, GAME)


def write(path, entries):
    path.write_text(json.dumps(entries))
    return str(path)


def test_command_prints_all_tables_and_draws(tmp_path, capsys):
    scores = write(tmp_path / "s.json", [entry("a", "x", 1, 3), entry("b", "x", 4, 0)])
    assert main([scores, "--plot", str(tmp_path / "figures")]) == 0
    printed = capsys.readouterr().out
    assert "75.0 [30.1, 95.4]" in printed and "ratings" in printed and "Nash" in printed
    [figure] = (tmp_path / "figures").glob("*.png")
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_heatmaps_mark_the_worst_cell_of_each_victim(tmp_path):
    from aprl.visualize.scores import heatmap

    frame = frame_of(entry("a", "x", 1, 3), entry("a", "y", 2, 2), entry("b", "x", 4, 0))
    figure = heatmap(payoff(frame, GAME))
    borders = [p.get_xy() for p in figure.axes[0].patches]
    assert borders == [(-0.5, -0.5), (-0.5, 0.5)]
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert texts[0] == "75\n[30, 95]" and texts[3] == ""
    scores = write(tmp_path / "s.json", [entry("a", "x", 1, 3)])
    [path] = save_heatmaps(scores, tmp_path, suffix="svg")
    assert path.suffix == ".svg"


@pytest.mark.parametrize(
    "content, complaint",
    [
        ("{}", "does not hold a list"),
        ('[{"k": [1]}]', "no score of a match-up"),
        ('[{"k": ["g", "a", "b", "c", "d"], "v": {"win0": -1, "win1": 0, "ties": 0}}]', "win0"),
        ("[", "not readable JSON"),
    ],
)
def test_files_without_scores_are_refused(tmp_path, content, complaint):
    path = tmp_path / "scores.json"
    path.write_text(content)
    with pytest.raises(RunError, match=complaint):
        read_scores(path)


def test_an_empty_list_of_scores_ends_in_one_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        run_cli(lambda: main([write(tmp_path / "s.json", [])]))
    assert capsys.readouterr().err.count("\n") == 1
