"""From a config to what the learner learns in: the game and all that is wrapped around it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from aprl.envs import VecMultiEnv, make_vec
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy
from aprl.policies.network import NetworkPolicy
from aprl.policies.noise import NoisyPolicy
from aprl.training.attacks import Attack, AttackRewardVecEnv, AttackSetting
from aprl.training.config import TrainConfig
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, GameOutcomeMonitor
from aprl.training.mixture import MultiCurryVecEnv
from aprl.training.normalize import VecNormalize
from aprl.training.schedules import Annealer, ConditionalAnnealer, EpisodeStatistics
from aprl.training.shaping import (
    RewardShapingVecWrapper,
    annealer_from_params,
    noise_annealer_from_params,
    statistics_window,
)
from aprl.training.transparent import TransparentCurryVecEnv


@dataclass
class RunSeeds:
    """One stream per part of a run that draws at random."""

    env: np.random.SeedSequence
    embed: np.random.SeedSequence
    learner: np.random.SeedSequence
    noise: np.random.SeedSequence
    mixture: np.random.SeedSequence
    attack: np.random.SeedSequence

    @classmethod
    def of(cls, seed: int) -> "RunSeeds":
        """All streams of a run's seed."""
        return cls(*np.random.SeedSequence(seed).spawn(6))


class Stack:
    """The game, the embedded players, shaping, attack and normaliser, one around the other.

    Args:
        config: resolved.
        seeds: of the run.
        gamma: the learner's discount factor.
        progress: tells the progress of the whole run, in [0, 1].

    Attributes:
        monitor: counts the games.
        game: the game with the embedded players, in which one agent is left.
        mixture: the embedded players if they are several; else None.
        noise: the embedded player's noise; None without any.
        shaping: None if the raw reward is learned from.
        attack: what the attack adds to the reward; None if it adds nothing.
        setting: what the attack may use of the run.
        normaliser: None if nothing is normalised.
        venv: what the learner sees.
    """

    def __init__(
        self,
        config: TrainConfig,
        seeds: RunSeeds,
        gamma: float,
        progress: Callable[[], float],
    ) -> None:
        self._config, self._progress = config, progress
        game = make_vec(config.env_name, config.num_env, seeds.env, **config.env_options())
        self.monitor = GameOutcomeMonitor(game)
        self.episodes = EpisodeStatistics(
            statistics_window(config.rew_shape_params, config.embed_noise_params)
        )
        self.setting = self._setting(seeds.attack, gamma)
        attack = config.make_attack()
        changed = self.monitor if attack is None else attack.wrap_game(self.monitor, self.setting)
        self.noise: Annealer | None = None
        self.mixture: MultiCurryVecEnv | None = None
        self._noise_seed = seeds.noise
        self.game = self._embed(changed, self._embedded(game, seeds.embed), seeds)
        flat = FlattenSingletonVecEnv(self.game, config.agent_idx)
        venv: VecEnv = flat
        self.shaping: RewardShapingVecWrapper | None = None
        if config.rew_shape:
            self.shaping = RewardShapingVecWrapper(
                flat,
                config.rew_shape_params["weights"],
                annealer_from_params(config.rew_shape_params, self.episodes),
                progress,
                self.episodes,
            )
            venv = self.shaping
        self.attack: AttackRewardVecEnv | None = None
        if attack is not None:
            venv = attack.wrap_reward(venv, flat, self.setting)
            self.attack = venv if isinstance(venv, AttackRewardVecEnv) else None
        self.normaliser: VecNormalize | None = None
        if config.normalize:
            self.normaliser = VecNormalize(
                venv, norm_obs=config.normalize_observations, norm_reward=True, gamma=gamma
            )
            venv = self.normaliser
        self.venv = venv

    def _setting(self, seed: np.random.SeedSequence, gamma: float) -> AttackSetting:
        config = self._config
        game = self.monitor.unwrapped
        agent = config.agent_idx

        def load(kind: str, path: Any) -> Policy:
            return self._load(game, kind, path, agent, seed)

        return AttackSetting(
            agent_idx=agent,
            load=load,
            make_game=lambda n: make_vec(config.env_name, n, seed, **config.env_options()),
            sparse_weights=config.rew_shape_params["weights"]["sparse"],
            gamma=gamma,
            progress=self._progress,
            seed=seed,
        )

    def _load(
        self,
        game: VecMultiEnv,
        kind: str,
        path: str,
        index: int,
        seed: int | np.random.SeedSequence,
    ) -> Policy:
        return load_policy(
            kind,
            path,
            observation_space=game.observation_spaces[index],
            action_space=game.action_spaces[index],
            env_name=self._config.env_name,
            index=index,
            seed=seed,
            zoo_dir=self._config.zoo_dir,
        )

    def _embedded(self, game: VecMultiEnv, seed: np.random.SeedSequence) -> list[Policy]:
        config = self._config
        assert config.embed_types is not None and config.embed_paths is not None
        count, index = len(config.embed_types), config.resolved_embed_index
        own = [seed] if count == 1 else seed.spawn(count)
        policies = [
            self._load(game, kind, path, index, seed)
            for kind, path, seed in zip(config.embed_types, config.embed_paths, own, strict=True)
        ]
        if not config.embed_noise:
            return policies
        annealer = noise_annealer_from_params(config.embed_noise_params, self.episodes)
        self.noise = annealer
        return [
            NoisyPolicy(policy, lambda: annealer(self._progress()), seed)
            for policy, seed in zip(policies, self._noise_seed.spawn(count), strict=True)
        ]

    def _embed(self, venv: VecMultiEnv, policies: list[Policy], seeds: RunSeeds) -> VecMultiEnv:
        config = self._config
        index, deterministic = config.resolved_embed_index, config.embed_deterministic
        if not policies:
            return venv
        if len(policies) > 1:
            self.mixture = MultiCurryVecEnv(
                venv, policies, index, config.embed_weights, deterministic, seeds.mixture
            )
            return self.mixture
        if config.transparent_params is not None:
            policy = policies[0]
            assert isinstance(policy, NetworkPolicy)
            keys = config.transparent_params
            return TransparentCurryVecEnv(venv, policy, index, keys, deterministic)
        return CurryVecEnv(venv, policies[0], index, deterministic)

    def exchange_opponents(self, seed: np.random.SeedSequence) -> None:
        """Let the policies that the config names now take the place of the mixture's members.

        Raises:
            AprlError: a policy is missing, or does not fit the game.
        """
        assert self.mixture is not None
        self.mixture.exchange(self._embedded(self.monitor.unwrapped, seed))

    def log_values(self) -> dict[str, float]:
        """What the parts report of the last rollout; they start counting anew."""
        values: dict[str, float] = {}
        for part in (self.monitor.outcomes, self.mixture, self.shaping, self.attack):
            if part is not None:
                values |= part.log_values()
                part.clear()
        if self.noise is not None:
            values["shaping/victim_noise"] = self.noise(self._progress())
        return values

    def finished_policy(self, learned: NetworkPolicy, attack: Attack | None) -> NetworkPolicy:
        """What plays the game as it is."""
        return learned if attack is None else attack.finished_policy(learned, self.setting)

    def state_dict(self) -> dict[str, Any]:
        """Everything in the stack that changes."""
        state = {
            name: None if part is None else part.state_dict()
            for name, part in (
                ("game", self.game),
                ("shaping", self.shaping),
                ("attack", self.attack),
                ("normaliser", self.normaliser),
            )
        }
        noise = self.noise
        state["noise"] = noise.state_dict() if isinstance(noise, ConditionalAnnealer) else None
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name in ("game", "shaping", "attack", "normaliser"):
            part = getattr(self, name)
            if part is not None:
                part.load_state_dict(state[name])
        if isinstance(self.noise, ConditionalAnnealer):
            self.noise.load_state_dict(state["noise"])
