"""The potentials that a config can ask for."""

from typing import Any

from gymnasium import spaces

from aprl.errors import ConfigError, unknown_name
from aprl.policies.spaces import describe
from aprl.reward_preprocessing.agents import load_agent
from aprl.rewards.potentials import (
    CriticPotential,
    LinearPotential,
    MlpPotential,
    Potential,
    TabularPotential,
)

TRAINABLE = ("tabular", "linear", "mlp", "critic")


def make_potential(
    kind: str, observation_space: spaces.Space, options: dict[str, Any] | None = None, seed: int = 0
) -> Potential:
    """A potential that is zero, ready for training.

    Args:
        kind: one of `TRAINABLE`.
        observation_space: of the environment; Discrete for a tabular potential, else a flat Box.
        options: `num_hidden` and `hidden_size` of an MLP; `agent_path` of a critic.
        seed: of initial weights.

    Raises:
        ConfigError: unknown kind or options, or states that this kind cannot take.
        RewardError: the critic's policy cannot be read or plays another environment.
    """
    options = dict(options or {})
    known = {"mlp": {"num_hidden", "hidden_size"}, "critic": {"agent_path"}}.get(kind, set())
    if kind not in TRAINABLE:
        raise unknown_name("potential", kind, TRAINABLE)
    if set(options) - known:
        raise ConfigError(
            f"potential_options of a {kind} potential are {sorted(known)}, got {sorted(options)}"
        )
    if kind == "critic":
        if "agent_path" not in options:
            raise ConfigError("a critic potential needs potential_options.agent_path, a policy")
        return CriticPotential(load_agent(options["agent_path"], observation_space))
    discrete = isinstance(observation_space, spaces.Discrete)
    if kind == "tabular" and isinstance(observation_space, spaces.Discrete):
        return TabularPotential(int(observation_space.n))
    if discrete or not isinstance(observation_space, spaces.Box) or kind == "tabular":
        expected = "numbered states" if kind == "tabular" else "states that are vectors"
        raise ConfigError(f"a {kind} potential needs {expected}, not {describe(observation_space)}")
    for name, value in options.items():
        if type(value) is not int or value < 1:
            raise ConfigError(f"potential_options.{name} must be a positive integer, got {value!r}")
    if kind == "linear":
        return LinearPotential(observation_space.shape[0])
    hidden_sizes = [options.get("hidden_size", 64)] * options.get("num_hidden", 1)
    return MlpPotential(observation_space, hidden_sizes, seed)
