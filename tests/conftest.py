"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir():
    """Folder of reference data; tests that need it are skipped without it.

    It lies beside the checkout, or where the environment variable APRL_REFERENCE_DATA says.
    """
    beside = Path(__file__).parents[2] / "shared"
    path = Path(os.environ.get("APRL_REFERENCE_DATA", beside))
    if not path.is_dir():
        pytest.skip(f"no reference data at {path}")
    return path
