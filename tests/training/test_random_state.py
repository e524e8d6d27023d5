import random

import numpy as np
import torch

from aprl.training.checkpoints import load_state, save_state
from aprl.training.random_state import (
    PrivateRandomState,
    global_random_state,
    set_global_random_state,
)


def draw():
    return torch.rand(1).item(), np.random.random(), random.random()  # noqa: NPY002


def test_saved_and_set(tmp_path):
    save_state(tmp_path / "state", global_random_state())
    first = draw()
    assert draw() != first
    set_global_random_state(load_state(tmp_path / "state"))
    assert draw() == first


def test_lent_and_taken_back():
    before = global_random_state()
    own = PrivateRandomState(1)
    with own.lent():
        first = draw()
    outside = draw()
    with own.lent():
        second = draw()
    set_global_random_state(before)
    assert draw() == outside, "the private draws moved the global generators"
    other = PrivateRandomState(1)
    with other.lent():
        assert (draw(), draw()) == (first, second), "draws outside moved the private generators"
    with PrivateRandomState(2).lent():
        assert draw() != first


def test_state_within_and_outside():
    own = PrivateRandomState(1)
    with own.lent():
        draw()
        within = own.state_dict()
        after = draw()
    other = PrivateRandomState(5)
    other.load_state_dict(within)
    with other.lent():
        assert draw() == after
    own.load_state_dict(within)
    with own.lent():
        assert draw() == after
