"""Attack the shipped ant with skrl's PPO: `pip install skrl`, then run this file."""

import gymnasium
from skrl.envs.wrappers.torch import wrap_env
from skrl.utils.runner.torch import Runner

import aprl  # noqa: F401 - makes "aprl/Attack-v0" known to Gymnasium

env = wrap_env(
    gymnasium.make_vec(
        "aprl/Attack-v0",
        num_envs=64,
        vectorization_mode="vector_entry_point",
        game="multicomp/RunToGoalAnts-v1",
        victim_type="ppo",
        victim_path="data/victims/RunToGoalAnts-v1",
    )
)
network = [{"name": "net", "input": "OBSERVATIONS", "layers": [64, 64], "activations": "tanh"}]
policy = {
    "class": "GaussianMixin",
    "clip_actions": True,
    "initial_log_std": -2.0,
    "network": network,
    "output": "ACTIONS",
}
value = {"class": "DeterministicMixin", "network": network, "output": "ONE"}
Runner(
    env,
    {
        "seed": 0,
        "models": {"separate": True, "policy": policy, "value": value},
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {"class": "PPO", "rollouts": 64, "mini_batches": 4, "learning_epochs": 4},
        "trainer": {"class": "SequentialTrainer", "timesteps": 256, "headless": True},
    },
).run()
