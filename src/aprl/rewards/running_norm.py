"""Running mean and variance as part of a network, so that they travel with its weights."""

import math

import torch
from torch import nn


class RunningNorm(nn.Module):
    """Shift and scale by the mean and standard deviation of all that was seen.

    Statistics change only in `update`, by the parallel algorithm of Chan, Golub and LeVeque (1979);
    a forward pass never changes them. Before the first update it does nothing.

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
