import numpy as np
import pytest
import torch

from aprl.rewards import RunningNorm
from aprl.rewards.scaling import FixedScale


def test_statistics_of_parts_are_those_of_the_whole():
    rows = torch.from_numpy(np.random.default_rng(0).normal(5.0, [1.0, 30.0], (100, 2)))
    norm = RunningNorm(2)
    for part in rows.split([1, 60, 0, 39]):
        norm.update(part)
    assert norm.count == 100
    torch.testing.assert_close(norm.mean, rows.mean(dim=0))
    torch.testing.assert_close(norm.var, rows.var(dim=0, unbiased=False))
    out = norm(rows.float())
    assert out.dtype == torch.float32
    assert out.mean(dim=0).abs().max() < 1e-5
    assert (out.std(dim=0, unbiased=False) - 1).abs().max() < 1e-5


def test_forward_changes_nothing_and_clips():
    norm = RunningNorm(1, clip=2.0)
    norm.update(torch.tensor([[0.0], [2.0]]))
    out = norm(torch.tensor([[1.0], [100.0], [-100.0]]))
    assert out.squeeze(1).tolist() == pytest.approx([0.0, 2.0, -2.0])
    assert norm.count == 2


def test_before_the_first_update_it_does_nothing():
    rows = torch.tensor([[3.0, -4.0]])
    torch.testing.assert_close(RunningNorm(2)(rows), rows)
    torch.testing.assert_close(FixedScale(2)(rows), rows)


def test_a_fixed_scale_is_that_of_the_last_rows():
    rows = torch.from_numpy(np.random.default_rng(0).normal(5.0, [1.0, 30.0, 0.0], (100, 3)))
    scale = FixedScale(3)
    scale.update(rows + 1)
    scale.update(rows)
    torch.testing.assert_close(scale.mean, rows.mean(dim=0))
    assert scale.std[2] == 1, "what never changes is only shifted"
    out = scale(rows.float())
    assert out.dtype == torch.float32
    assert (out[:, :2].std(dim=0, unbiased=False) - 1).abs().max() < 1e-5


def test_statistics_travel_with_the_weights():
    norm, other = RunningNorm(1), RunningNorm(1)
    norm.update(torch.tensor([[1.0], [5.0]]))
    other.load_state_dict(norm.state_dict())
    assert other.mean == 3 and other.var == 4 and other.count == 2
