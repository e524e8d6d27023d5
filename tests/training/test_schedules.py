"""Values that change over a run, at the edges of the run."""

import pytest

from aprl.errors import ConfigError
from aprl.training.schedules import ConstantAnnealer, LinearAnnealer

PROGRESS = [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("end_frac", "expected"),
    [
        (0, [4, 4, 4, 4, 4]),  # the end value from the first step
        (0.25, [2, 4, 4, 4, 4]),
        (0.5, [2, 3, 4, 4, 4]),
        (1, [2, 2.5, 3, 3.5, 4]),
    ],
)
def test_linear_up_and_down(end_frac, expected):
    up, down = LinearAnnealer(2, 4, end_frac), LinearAnnealer(4, 2, end_frac)
    assert [up(p) for p in PROGRESS] == expected
    assert [down(p) for p in PROGRESS] == [6 - value for value in expected]


@pytest.mark.parametrize("end_frac", [0, 1e-9, 0.3, 1])
def test_linear_ends_exactly_and_never_overshoots(end_frac):
    annealer = LinearAnnealer(1.0, 0.0, end_frac)
    assert annealer(end_frac) == annealer(1.0) == annealer(1.5) == 0.0


@pytest.mark.parametrize("end_frac", [-0.1, 1.5, float("nan"), float("inf")])
def test_linear_refuses_a_fraction_outside_the_run(end_frac):
    with pytest.raises(ConfigError, match=rf"anneal_frac must be in \[0, 1\], got {end_frac}"):
        LinearAnnealer(1, 0, end_frac)


def test_constant():
    assert [ConstantAnnealer(0.3)(p) for p in PROGRESS] == [0.3] * 5
