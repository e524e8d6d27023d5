"""Comparing what networks put out."""

import numpy as np
import torch


def assert_same_outputs(actual, expected):
    """`actual` and `expected` are what the same weights give for the same inputs.

    The last bit may differ: on some CPUs the sums of a matrix product are ordered by where its
    operands lie in memory. What must agree to the bit is weights, inputs and random numbers.
    """
    actual, expected = (
        x.detach().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
        for x in (actual, expected)
    )
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6, strict=True)
