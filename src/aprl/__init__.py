"""Train, measure, defend against and explain adversarial policies in multi-agent games.

Importing this package makes `aprl/Attack-v0` known to Gymnasium, and has the threads of PyTorch's
OpenMP (GNU) sleep after a short wait, unless the environment variables `GOMP_SPINCOUNT` or
`OMP_WAIT_POLICY` say otherwise or PyTorch was imported before. A thread that goes on spinning takes
the core that the others need: beside another busy process, updates of small networks become several
times slower (measured by `benchmarks/waiting_threads.py`).
"""

import os

import gymnasium

__version__ = "0.3.0"

if "OMP_WAIT_POLICY" not in os.environ:
    # The count that GNU OpenMP itself takes where it knows of more threads than cores.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

gymnasium.register(
    "aprl/Attack-v0",
    entry_point="aprl.attack_env:AttackEnv",
    vector_entry_point="aprl.attack_env:AttackVectorEnv",
)
