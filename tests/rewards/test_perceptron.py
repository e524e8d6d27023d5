"""The network inside rewards and potentials."""

import pytest
import torch

from aprl.errors import ConfigError
from aprl.rewards.perceptron import Perceptron


def test_seeded_weights_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    first, same, other = (Perceptron(3, (4,), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.layers[0].weight, same.layers[0].weight)
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


def test_unseeded_weights_come_from_the_global_generator():
    nets = []
    with torch.random.fork_rng(devices=[]):
        for _ in range(2):
            torch.manual_seed(5)
            nets.append(Perceptron(3, (4,), seed=None))
    assert torch.equal(nets[0].layers[0].weight, nets[1].layers[0].weight)


def test_layers_by_hand():
    net = Perceptron(2, (3,), seed=0, activation="tanh", input_scaling="none")
    rows = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    first, _, last = net.layers
    hidden = torch.tanh(rows @ first.weight.T + first.bias)
    torch.testing.assert_close(net(rows), (hidden @ last.weight.T + last.bias)[:, 0])


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ((0,), {}, "hidden_sizes are integers"),
        ((4.0,), {}, "hidden_sizes are integers"),
        ((4,), {"activation": "tan"}, "did you mean 'tanh'"),
        ((4,), {"input_scaling": "batch"}, "unknown input_scaling"),
        ((4,), {"precision": "float16"}, "unknown precision"),
    ],
)
def test_options_that_do_not_exist(sizes, options, message):
    with pytest.raises(ConfigError, match=message):
        Perceptron(3, sizes, seed=0, **options)
