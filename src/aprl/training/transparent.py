"""An embedded player that can be looked into: its activations, step by step."""

from collections.abc import Iterable, Sequence

import numpy as np

from aprl.envs.base import Step, VecMultiEnv
from aprl.errors import ConfigError, unknown_name
from aprl.policies.network import NetworkPolicy
from aprl.training.embedding import CurryVecEnv, PolicyPlayer

# What can be seen: the observation, hidden units of the policy and of the value tower (layers side
# by side, the first first), and the recurrent state.
TRANSPARENCY_KEYS = ("obs", "ff_policy", "ff_value", "hid")


def require_transparency_keys(keys: Iterable[str]) -> list[str]:
    """The keys, in order, if there are any and all are known.

    Raises:
        ConfigError: none, or an unknown one.
    """
    wanted = list(keys)
    for key in wanted:
        if key not in TRANSPARENCY_KEYS:
            raise unknown_name("transparency key", key, TRANSPARENCY_KEYS)
    if not wanted:
        raise ConfigError(f"no transparency key; known are {', '.join(TRANSPARENCY_KEYS)}")
    return wanted


def check_transparency(keys: Iterable[str], policy: object) -> list[str]:
    """The keys, in order, if `policy` can show all of them.

    Raises:
        ConfigError: unknown keys, a policy that is no network, or `hid` of one without memory.
    """
    wanted = require_transparency_keys(keys)
    if not isinstance(policy, NetworkPolicy):
        raise ConfigError(f"a {type(policy).__name__} has no activations to look at")
    if "hid" in wanted and policy.initial_state(1) is None:
        raise ConfigError("transparency key 'hid' is the recurrent state; this policy has none")
    return wanted


class TransparentCurryVecEnv(CurryVecEnv):
    """`CurryVecEnv` whose infos hold the embedded player's activations in every step.

    `infos[env][agent_idx][key]` is what the player computed before the step, `(features,)`, for
    that environment alone.

    Args:
        venv: see `CurryVecEnv`.
        policy: a network.
        agent_idx: see `CurryVecEnv`; also the index in the game, so all earlier agents are there.
        keys: some of `TRANSPARENCY_KEYS`.
        deterministic: see `CurryVecEnv`.

    Raises:
        ConfigError: see `CurryVecEnv` and `check_transparency`.
    """

    def __init__(
        self,
        venv: VecMultiEnv,
        policy: NetworkPolicy,
        agent_idx: int,
        keys: Iterable[str],
        deterministic: bool = False,
    ) -> None:
        self._keys = check_transparency(keys, policy)
        super().__init__(venv, policy, agent_idx, deterministic)

    def look(self) -> dict[str, np.ndarray]:
        """What the player computes on the present observation, per key `(num_envs, features)`."""
        assert isinstance(self.player, PolicyPlayer)
        obs = self.embedded_obs
        seen = {"obs": obs.copy(), **self.player.activations(obs)}
        if "hid" in self._keys:
            seen["hid"] = self.player.state_after(obs).reshape(len(obs), -1)
        return {key: seen[key] for key in self._keys}

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `CurryVecEnv.step`."""
        seen = self.look()
        step = super().step(actions)
        for env, info in enumerate(step[3]):
            entry = info.setdefault(self.agent_idx, {})
            entry.update({key: values[env] for key, values in seen.items()})
        return step
