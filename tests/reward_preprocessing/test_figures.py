"""Figures in files, pages, and potentials drawn."""

import base64

import gymnasium
import numpy as np
import pytest
from matplotlib.figure import Figure

from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs.mountain_car import shaping_potential
from aprl.reward_preprocessing.figures import figure_without_suffix, save_figure, write_page
from aprl.reward_preprocessing.potential_plot import draw_potential, save_potential_plot
from aprl.rewards.potentials import LinearPotential, TabularPotential


def figure():
    result = Figure()
    result.add_subplot().plot([0, 1])
    return result


def test_three_formats_the_same_each_time(tmp_path):
    paths = save_figure(figure(), tmp_path / "deep" / "plot.x")
    assert [p.name for p in paths] == ["plot.x.pdf", "plot.x.png", "plot.x.svg"]
    heads = [p.read_bytes()[:5] for p in paths]
    assert heads == [b"%PDF-", b"\x89PNG\r", b"<?xml"]
    before = [p.read_bytes() for p in paths]
    assert [p.read_bytes() for p in save_figure(figure(), tmp_path / "deep" / "plot.x")] == before


@pytest.mark.parametrize("name", ["plot", "plot.pdf", "plot.html"])
def test_suffixes_of_formats_are_dropped(name):
    assert figure_without_suffix(f"a/{name}").as_posix() == "a/plot"
    assert figure_without_suffix("a/v1.2").as_posix() == "a/v1.2"


def test_a_page_holds_its_figures_and_escapes_text(tmp_path):
    svg = save_figure(figure(), tmp_path / "figure")[-1]
    page = write_page(
        tmp_path / "page.html", "a < b", [("one & two", svg)] * 2, [["x"], ["<script>"]]
    ).read_text()
    assert base64.b64encode(svg.read_bytes()).decode() in page
    assert page.count("data:image/svg+xml;base64,") == 2
    assert "a &lt; b" in page and "one &amp; two" in page and "<td>&lt;script&gt;</td>" in page
    assert "<script>" not in page and "http" not in page
    assert "<table" not in write_page(tmp_path / "plain.html", "x", []).read_text()


def test_potentials_of_mazes():
    env = EnvConfig(name="aprl/KeyMaze6-v0").make()
    potential = TabularPotential(72)
    potential.set_coefficients(np.arange(72.0))
    drawn = draw_potential(potential, env)
    without, with_key, *_ = (a.images[0].get_array() for a in drawn.axes if a.images)
    assert without[2, 1] == 6 * 1 + 2 and with_key[2, 1] == 36 + 8  # [y, x]
    assert np.isnan(np.ma.filled(without, np.nan)[1, 1])  # nobody is there without the key


def test_potentials_of_a_plane(tmp_path):
    env = gymnasium.make("aprl/MountainCar-v0")
    drawn = draw_potential(shaping_potential("dense"), env)
    values = np.asarray(drawn.axes[0].images[0].get_array())
    assert values.min() == pytest.approx(-120) and values.max() == pytest.approx(60)
    assert (np.diff(values, axis=1) > 0).all()  # the position is along the horizontal axis
    assert save_potential_plot(shaping_potential("dense"), env, tmp_path / "p.pdf").is_file()


def test_states_that_cannot_be_drawn(tmp_path):
    env = gymnasium.make("Pendulum-v1")
    assert save_potential_plot(LinearPotential(3), env, tmp_path / "p.pdf") is None
    assert not (tmp_path / "p.pdf").exists()
