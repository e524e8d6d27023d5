"""Train, measure, defend against and explain adversarial policies in multi-agent games.

Importing this package makes `aprl/Attack-v0` known to Gymnasium.
"""

import gymnasium

__version__ = "0.3.0"

gymnasium.register(
    "aprl/Attack-v0",
    entry_point="aprl.attack_env:AttackEnv",
    vector_entry_point="aprl.attack_env:AttackVectorEnv",
)
