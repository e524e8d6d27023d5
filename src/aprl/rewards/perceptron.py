"""The one kind of layered network that rewards and potentials are made of."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypedDict

import torch
from torch import nn
from torch.nn.utils import parametrizations

from aprl.errors import ConfigError, unknown_name
from aprl.rewards.scaling import FixedScale, RunningNorm

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh}
INPUT_SCALINGS = ("fixed", "running", "none")
PRECISIONS = {"float32": torch.float32, "float64": torch.float64}
INPUT_CLIP = 10.0  # standard deviations, of running statistics


class PerceptronOptions(TypedDict, total=False):
    """What perceptrons may differ in beside their sizes."""

    activation: Literal["relu", "tanh"]  # relu unless given
    input_scaling: Literal["fixed", "running", "none"]  # fixed: by the data of the last update;
    # running: by all that was seen, clipped at 10 standard deviations
    spectral_norm: bool  # bound each layer's largest singular value by 1 (Miyato et al., ICLR 2018)
    precision: Literal["float32", "float64"]  # of weights and outputs, float64 unless given


class Perceptron(nn.Module):
    """Layers with one output, whose inputs may be scaled by statistics of the data.

    Args:
        num_inputs: components per row.
        hidden_sizes: units per hidden layer; () is a linear function.
        seed: of the initial weights, PyTorch's defaults; the global generator is left alone. None
            draws them from the global generator.
        activation: see `PerceptronOptions`.
        input_scaling: see `PerceptronOptions`.
        spectral_norm: see `PerceptronOptions`.
        precision: see `PerceptronOptions`.

    Attributes:
        layers: linear ones, with activations between them.
        norm: what scales the inputs; None if nothing does.
        options: what the net is rebuilt from, as JSON types: sizes and `PerceptronOptions`.

    Raises:
        ConfigError: sizes that are not positive integers, or an unknown option.
    """

    def __init__(
        self,
        num_inputs: int,
        hidden_sizes: Sequence[int],
        *,
        seed: int | None,
        activation: str = "relu",
        input_scaling: str = "fixed",
        spectral_norm: bool = False,
        precision: str = "float64",
    ) -> None:
        super().__init__()
        if any(type(size) is not int or size < 1 for size in hidden_sizes):
            raise ConfigError(f"hidden_sizes are integers of at least 1, got {hidden_sizes}")
        for what, name, known in (
            ("activation", activation, ACTIVATIONS),
            ("input_scaling", input_scaling, INPUT_SCALINGS),
            ("precision", precision, PRECISIONS),
        ):
            if name not in known:
                raise unknown_name(what, name, known)
        self.options: dict[str, Any] = {
            "hidden_sizes": list(hidden_sizes),
            "activation": activation,
            "input_scaling": input_scaling,
            "spectral_norm": spectral_norm,
            "precision": precision,
        }
        self.dtype = PRECISIONS[precision]
        self.norm: FixedScale | RunningNorm | None = None
        if input_scaling == "fixed":
            self.norm = FixedScale(num_inputs)
        elif input_scaling == "running":
            self.norm = RunningNorm(num_inputs, epsilon=1e-6, clip=INPUT_CLIP)
        sizes = [num_inputs, *hidden_sizes, 1]
        layers: list[nn.Module] = []
        with _drawing_from(seed):
            for inputs, units in itertools.pairwise(sizes):
                layer: nn.Module = nn.Linear(inputs, units, dtype=self.dtype)
                layers += [parametrizations.spectral_norm(layer) if spectral_norm else layer]
                layers += [ACTIVATIONS[activation]()]
        self.layers = nn.Sequential(*layers[:-1])

    def update_statistics(self, rows: torch.Tensor) -> None:
        """Let the scale of the inputs, if there is one, take `(n, num_inputs)` rows in."""
        if self.norm is not None:
            self.norm.update(rows)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Outputs `(n,)` of `(n, num_inputs)` rows, which are of this precision."""
        return self.layers(rows if self.norm is None else self.norm(rows)).squeeze(1)


@contextlib.contextmanager
def _drawing_from(seed: int | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
