"""Arrays as tensors of the types that reward nets and potentials compute in."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn


def as_tensor(values: np.ndarray) -> torch.Tensor:
    """Integers as int64, bools as they are, everything else as float64."""
    values = np.asarray(values)
    if values.dtype == bool:
        return torch.from_numpy(np.ascontiguousarray(values))
    kind = np.int64 if np.issubdtype(values.dtype, np.integer) else np.float64
    # A copy where the array is read-only, which PyTorch warns about.
    return torch.from_numpy(np.require(values, kind, ["C", "W"]))


def relu_tower(sizes: Sequence[int], seed: int) -> nn.Sequential:
    """Float64 layers with ReLU between them.

    Args:
        sizes: inputs, hidden units per layer, outputs.
        seed: of the initial weights, PyTorch's defaults; the global generator is left alone.
    """
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for index in range(len(sizes) - 1):
            layers.append(nn.Linear(sizes[index], sizes[index + 1], dtype=torch.float64))
            if index < len(sizes) - 2:
                layers.append(nn.ReLU())
    return nn.Sequential(*layers)
