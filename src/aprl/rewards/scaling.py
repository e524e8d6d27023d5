"""How inputs are put on a common scale, as parts of a network, so that it travels with its weights.

Statistics are float64 and change only in `update`; a forward pass never changes them. Before the
first update nothing is scaled.
"""

import math

import numpy as np
import torch
from torch import nn


class FixedScale(nn.Module):
    """Shift and scale by the mean and standard deviation of what `update` was given last.

    Args:
        size: components per row.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("std", torch.ones(size, dtype=torch.float64))

    @torch.no_grad()
    def update(self, rows: torch.Tensor) -> None:
        """Take over the statistics of `rows` `(n, size)`; a component that never changes keeps 1.

        n is at least 1.
        """
        values = rows.double().numpy()
        std = values.std(axis=0)
        self.mean.copy_(torch.from_numpy(values.mean(axis=0)))
        self.std.copy_(torch.from_numpy(np.where(std > 1e-8, std, 1.0)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Scaled rows, of the type that `rows` has."""
        return (rows - self.mean.to(rows.dtype)) / self.std.to(rows.dtype)


class RunningNorm(nn.Module):
    """Shift and scale by the mean and standard deviation of all that was seen.

    `update` is the parallel algorithm of Chan, Golub and LeVeque (1979).

    Args:
        size: components per row.
        epsilon: added to the variance.
        clip: bound of the outcome, in standard deviations.
    """

    mean: torch.Tensor
    var: torch.Tensor
    count: torch.Tensor

    def __init__(self, size: int, epsilon: float = 1e-8, clip: float = math.inf) -> None:
        super().__init__()
        self.size, self.epsilon, self.clip = size, epsilon, clip
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("var", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))

    @torch.no_grad()
    def update(self, rows: torch.Tensor) -> None:
        """Take `rows` `(n, size)` into account."""
        if len(rows) == 0:
            return
        rows = rows.double()
        count, mean, var = len(rows), rows.mean(dim=0), rows.var(dim=0, unbiased=False)
        total = self.count + count
        delta = mean - self.mean
        spread = self.var * self.count + var * count + delta**2 * self.count * count / total
        self.mean += delta * count / total
        self.var.copy_(spread / total)
        self.count.copy_(total)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Normalised rows, of the type that `rows` has."""
        scale = torch.rsqrt(self.var + self.epsilon)
        normalised = (rows - self.mean.to(rows.dtype)) * scale.to(rows.dtype)
        return normalised.clamp(-self.clip, self.clip)
