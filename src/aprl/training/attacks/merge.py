"""Adversaries that only perturb: a bounded action on top of a base policy's."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from aprl.envs.base import Observations, Step, VecMultiEnv, VecMultiWrapper
from aprl.errors import ConfigError
from aprl.policies.base import Policy
from aprl.policies.spaces import describe, fits
from aprl.training.embedding import PolicyPlayer


class MergeAgentVecEnv(VecMultiWrapper):
    """Agent `agent_idx` acts by adding to what a base policy does, and sees what that is.

    Its observations are the game's followed by the base policy's action, its actions are in
    `noise_val` times the game's action box; the sum is clipped to the game's box.

    Args:
        venv: the game; the agent's spaces are boxes.
        policy: the base policy.
        agent_idx: position of the agent among the agents of `venv`.
        noise_val: size of the ball, relative to the action box, above 0.
        deterministic: the base policy plays its mode.

    Raises:
        ConfigError: no such agent, spaces that do not fit or are no boxes, or a size of 0 or less.
    """

    def __init__(
        self,
        venv: VecMultiEnv,
        policy: Policy,
        agent_idx: int,
        noise_val: float,
        deterministic: bool = False,
    ) -> None:
        super().__init__(venv)
        if not 0 <= agent_idx < venv.num_agents:
            raise ConfigError(f"agent_idx must be in 0..{venv.num_agents - 1}, got {agent_idx}")
        number = isinstance(noise_val, int | float) and not isinstance(noise_val, bool)
        if not number or not 0 < noise_val < math.inf:
            raise ConfigError(f"noise_val must be above 0 and finite, got {noise_val!r}")
        seen, acted = venv.observation_spaces[agent_idx], venv.action_spaces[agent_idx]
        if not isinstance(seen, spaces.Box) or not isinstance(acted, spaces.Box):
            raise ConfigError(
                f"a noise ball needs boxes, not {describe(seen)} and {describe(acted)}"
            )
        for what, ours, games in (
            ("observation", policy.observation_space, seen),
            ("action", policy.action_space, acted),
        ):
            if not fits(ours, games):
                raise ConfigError(
                    f"the base policy's {what} space is {describe(ours)}, the game's "
                    f"{describe(games)}"
                )
        self.agent_idx = agent_idx
        self.base = policy
        self._box = acted
        self._player = PolicyPlayer(policy, venv.num_envs, deterministic)
        self._base_actions: np.ndarray | None = None
        low, high = (
            np.concatenate([getattr(s, b) for s in (seen, acted)]) for b in ("low", "high")
        )
        ball = spaces.Box(
            (noise_val * acted.low).astype(np.float32), (noise_val * acted.high).astype(np.float32)
        )
        self.observation_spaces = self._replaced(
            venv.observation_spaces, spaces.Box(low.astype(np.float32), high.astype(np.float32))
        )
        self.action_spaces = self._replaced(venv.action_spaces, ball)

    def _replaced(self, items: Sequence[Any], own: Any) -> tuple[Any, ...]:
        return (*items[: self.agent_idx], own, *items[self.agent_idx + 1 :])

    def reset(self) -> Observations:
        """Start new episodes; the base policy's memory is cleared."""
        self._player.begin()
        return self._with_base(self.venv.reset())

    def step(self, actions: Sequence[np.ndarray]) -> Step:
        """See `VecMultiEnv.step`."""
        if self._base_actions is None:
            raise RuntimeError("call reset() before step()")
        merged = np.clip(
            self._base_actions + actions[self.agent_idx], self._box.low, self._box.high
        )
        obs, rewards, dones, infos = self.venv.step(self._replaced(actions, merged))
        for env in np.flatnonzero(dones):
            # The base policy does not act any more: what it would do counts as nothing.
            terminal = infos[env]["terminal_observation"]
            own = np.concatenate([terminal[self.agent_idx], np.zeros_like(self._box.low)])
            infos[env]["terminal_observation"] = self._replaced(terminal, own)
        self._player.observe_ends(dones)
        return self._with_base(obs), rewards, dones, infos

    def _with_base(self, obs: Observations) -> Observations:
        own = obs[self.agent_idx]
        self._base_actions = self._player.act(own)
        return self._replaced(obs, np.concatenate([own, self._base_actions], axis=1))

    def state_dict(self) -> dict[str, Any]:
        """See `VecMultiEnv.state_dict`; the base policy's memory and randomness included."""
        actions = None if self._base_actions is None else self._base_actions.copy()
        return {**super().state_dict(), "base": self._player.state_dict(), "base_actions": actions}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """See `VecMultiEnv.load_state_dict`."""
        super().load_state_dict(state)
        self._player.load_state_dict(state["base"])
        self._base_actions = state["base_actions"]
