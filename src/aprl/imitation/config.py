"""Everything that an imitation run can be told, declared once."""

from dataclasses import asdict, dataclass, field
from typing import Any

from aprl.configs.checks import check_entries, require_at_least, with_types
from aprl.envs import ENV_IDS
from aprl.envs.names import victim_index
from aprl.envs.single_agent import SINGLE_AGENT_IDS
from aprl.errors import ConfigError, unknown_name
from aprl.imitation.adversarial import ALGORITHMS, AdversarialConfig
from aprl.imitation.bc import BCConfig
from aprl.imitation.discriminator import DiscriminatorConfig
from aprl.imitation.environments import check_gym_id
from aprl.imitation.reward import TRANSFORMS
from aprl.policies.loader import POLICY_TYPES
from aprl.training.learner import ppo_arguments
from aprl.training.learning_rate import check_learning_rate


@dataclass
class ImitationConfig:
    """Options of `aprl.imitation.train`."""

    root_dir: str = "data/imitation"  # run directories are made in here
    exp_name: str = "imitation"  # ends the run directory's name
    algorithm: str = "gail"  # gail, airl or bc
    demonstrations: str | None = None  # .npz of aprl.imitation.make_demonstrations or score_agent
    n_demonstrations: int | None = None  # use the first so many episodes; None: all

    env_name: str = "CartPole-v1"  # Gymnasium id, or a game of this library
    env_options: dict[str, Any] = field(default_factory=dict)  # of the environment's constructor
    num_env: int = 8  # environments in the batch
    horizon: int | None = None  # steps of every episode, terminations ignored; None: as the id says
    agent_idx: int | None = None  # in a game: whom to imitate; None: its victim
    opponent_type: str = "zoo"  # in a game: the other player
    opponent_path: str = "1"
    allow_variable_horizon: bool = False  # accept episodes whose length depends on what is done

    total_timesteps: int = 100_000  # environment steps of the whole run
    batch_size: int = 2048  # environment steps per round, over all environments
    learning_rate: float = 1e-3  # of PPO, at the start
    learning_rate_schedule: str = "linear"  # to 0 at the end of the whole run; or constant
    rl_args: dict[str, Any] = field(default_factory=lambda: {"n_epochs": 10, "nminibatches": 8})
    policy_hidden: list[int] = field(default_factory=lambda: [64, 64])  # units, policy and value
    warm_start: bool = False  # begin with a clone instead of fresh weights

    reward_transform: str | None = None  # softplus or logit, airl or airl_with_entropy
    normalize_reward: bool = True  # by running statistics, after the transform
    reward_hidden: list[int] = field(default_factory=lambda: [32, 32])  # units per layer
    spectral_norm: bool = False  # bound the discriminator's slope
    gradient_penalty: float = 0.0  # weight; 0: none
    disc_batch_size: int = 512  # transitions of each side per update
    disc_updates: int = 20  # per round
    disc_learning_rate: float = 1e-3  # of Adam, constant
    disc_replay_rounds: int = 1  # newest rollouts that the generator's side is drawn from

    bc_epochs: int = 100  # at most; the best on held-out transitions counts
    bc_batch_size: int = 256  # transitions per update
    bc_learning_rate: float = 1e-3  # of Adam

    eval_episodes: int = 50  # per policy in the table at the end; 0: no table
    checkpoint_interval: int = 50_000  # environment steps
    keep_checkpoints: int | None = 3  # the newest ones; None: all
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ImitationConfig":
        """Build from a plain dict.

        Raises:
            ConfigError: unknown keys, with the nearest known ones.
        """
        check_entries(cls, values)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """As a plain dict of JSON types."""
        return asdict(self)

    @property
    def is_game(self) -> bool:
        """Whether the environment is a game of this library."""
        return self.env_name in ENV_IDS and self.env_name not in SINGLE_AGENT_IDS

    @property
    def imitated_agent(self) -> int:
        """Index in the game of the player that is imitated."""
        return victim_index(self.env_name) if self.agent_idx is None else self.agent_idx

    def ppo_arguments(self) -> dict[str, Any]:
        """Constructor arguments of PPO."""
        return ppo_arguments(self.rl_args, self.batch_size, self.num_env)

    def adversarial(self) -> AdversarialConfig:
        """The part that `AdversarialTrainer` takes."""
        return AdversarialConfig(
            algorithm=self.algorithm,
            reward_transform=self.reward_transform,
            normalize_reward=self.normalize_reward,
            allow_variable_horizon=self.allow_variable_horizon,
            discriminator=DiscriminatorConfig(
                batch_size=self.disc_batch_size,
                updates_per_round=self.disc_updates,
                learning_rate=self.disc_learning_rate,
                gradient_penalty=self.gradient_penalty,
                replay_rounds=self.disc_replay_rounds,
            ),
        )

    def cloning(self) -> BCConfig:
        """The part that `clone` takes."""
        return BCConfig(
            epochs=self.bc_epochs,
            batch_size=self.bc_batch_size,
            learning_rate=self.bc_learning_rate,
        )

    def check(self) -> "ImitationConfig":
        """A copy with values of the declared types.

        Raises:
            ConfigError: anything that cannot work; no environment has been built yet.
        """
        config = with_types(self)
        if config.algorithm not in (*ALGORITHMS, "bc"):
            raise unknown_name("algorithm", config.algorithm, (*ALGORITHMS, "bc"))
        if config.demonstrations is None:
            raise ConfigError("demonstrations must name an .npz file; see make_demonstrations")
        if not config.is_game:
            check_gym_id(config.env_name)
        elif config.opponent_type not in POLICY_TYPES:
            raise unknown_name("opponent_type", config.opponent_type, POLICY_TYPES)
        if config.is_game and config.horizon is not None:
            raise ConfigError("horizon is for Gymnasium environments; games have max_episode_steps")
        for name in ("num_env", "total_timesteps", "batch_size", "checkpoint_interval"):
            require_at_least(name, getattr(config, name), 1)
        for name in ("eval_episodes", "seed"):
            require_at_least(name, getattr(config, name), 0)
        for name in ("n_demonstrations", "horizon", "keep_checkpoints"):
            if getattr(config, name) is not None:
                require_at_least(name, getattr(config, name), 1)
        for name in ("policy_hidden", "reward_hidden"):
            for units in getattr(config, name):
                require_at_least(name, units, 1)
        for name in ("net_arch", "log_std_init"):
            if name in config.rl_args:
                raise ConfigError(f"rl_args cannot set {name} here; policy_hidden sets the layers")
        if config.agent_idx not in (None, 0, 1):
            raise ConfigError(f"agent_idx must be 0 or 1, got {config.agent_idx!r}")
        check_learning_rate(config.learning_rate, config.learning_rate_schedule)
        transform = config.reward_transform
        if transform is not None and transform not in TRANSFORMS:
            raise unknown_name("reward_transform", transform, TRANSFORMS)
        config.cloning().check()
        if config.algorithm != "bc":
            config.ppo_arguments()
            config.adversarial().check()
        return config
