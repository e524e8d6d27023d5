"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
import torch
from stable_baselines3.common.utils import set_random_seed

from aprl.envs import make_vec
from aprl.policies import ActorCriticMlp, MlpPolicy, save_policy

# Networks in tests are tiny: a second thread gains nothing, and on a busy machine PyTorch's threads
# wait for each other, which makes a test five times slower.
torch.set_num_threads(1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Seed the global generators: networks of a test must not depend on the tests before it."""
    set_random_seed(0)


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


@pytest.fixture
def rps_policy(tmp_path):
    """Directory of a saved policy for rock-paper-scissors."""
    space = make_vec("aprl/RockPaperScissors-v0", 1).observation_spaces[0]
    policy = MlpPolicy(ActorCriticMlp(3, 3, discrete=True), space, space)
    return save_policy(policy, tmp_path / "rps_policy", {})
