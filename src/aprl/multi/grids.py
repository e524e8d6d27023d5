"""The sweeps that have names: those of Gleave et al. (ICLR 2020), and their defences.

Each is a function from what the user may choose, a `Choice`, to a `Grid`. What the original grids
got wrong is mended here; the numbers are theirs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aprl.configs.train import PAPER_HYPERPARAMS, SPARSE_REWARD
from aprl.envs.names import canonical_game, victim_index
from aprl.errors import ConfigError
from aprl.highest_win_rate import best_policies
from aprl.multi.axes import Axis, LogUniform, PowerOfTwo, RandInt, Uniform, merged
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.store import read_header
from aprl.policies.zoo import ZOO_GAMES

GOOD_GAMES = (
    "KickAndDefend",
    "SumoHumansAutoContact",
    "SumoAntsAutoContact",
    "YouShallNotPassHumans",
)
MLP_GAMES = ("RunToGoalAnts", "RunToGoalHumans", "YouShallNotPassHumans")
LSTM_GAMES = (
    "KickAndDefend",
    "SumoAnts",
    "SumoHumans",
    "SumoAntsAutoContact",
    "SumoHumansAutoContact",
)
BASELINE_IDS = ("Reacher-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5")
TARGET_VICTIMS = {"KickAndDefend": "2"}  # of searches; "1" in other games

SEARCH_AXES: dict[str, Axis] = {
    "seed": RandInt(0, 1000),
    "batch_size": PowerOfTwo(11, 16),
    "rl_args.ent_coef": Uniform(0.0, 0.02),
    "rl_args.noptepochs": RandInt(1, 11),
    "learning_rate": LogUniform(1e-5, 1e-2),
}
OPPONENTS_FIRST_STEPS: dict[str, Any] = {  # hyperparameters of Bansal et al. (ICLR 2018)
    "batch_size": 2048,
    "learning_rate": 2.5e-4,
    "rl_args": {"ent_coef": 0.0},
}


@dataclass(frozen=True)
class Choice:
    """What the user chooses about a grid.

    Attributes:
        version: physics of the games, "v0" or "v1".
        dual: defences train against a normal opponent too.
        only_mlp: defences of You Shall Not Pass alone.
        from_scratch: attacks on hardened victims start anew, not from the earlier adversary.
        adversaries: tree of runs in which defences look up adversaries.
        hardened: tree of runs in which attacks look up hardened victims.
    """

    version: str = "v1"
    dual: bool = False
    only_mlp: bool = False
    from_scratch: bool = True
    adversaries: str = "data/adversaries"
    hardened: str = "data/victims"

    def env_id(self, game: str) -> str:
        """Environment id of a game in the chosen physics."""
        return f"multicomp/{game}-{self.version}"

    @property
    def defence_name(self) -> str:
        """`finetune_defense_<single|dual>[_mlp]`."""
        kind = "dual" if self.dual else "single"
        return f"finetune_defense_{kind}{'_mlp' if self.only_mlp else ''}"


@dataclass(frozen=True)
class Grid:
    """A sweep.

    Attributes:
        name: of the experiment.
        train: entries of `TrainConfig` that all trials share.
        axes: what differs between trials.
        num_samples: how often the grid is gone through; sampled axes are drawn anew each time.
        missing: victims that were left out because something that their trials need is missing.
    """

    name: str
    train: dict[str, Any]
    axes: dict[str, Axis]
    num_samples: int = 1
    missing: list[str] = field(default_factory=list)


def zoo_tags(game: str) -> list[str]:
    """Tags of the published victims of a game."""
    return [str(tag) for tag in range(1, ZOO_GAMES[canonical_game(game)].versions + 1)]


def _sparse(*more: Mapping[str, Any]) -> dict[str, Any]:
    train = dict(SPARSE_REWARD)
    for each in more:
        train = merged(train, each)
    return train


def _victims(choice: Choice, games: Sequence[str] = GOOD_GAMES) -> list[list[str]]:
    """Environment id and tag of each published victim."""
    return [[choice.env_id(game), tag] for game in games for tag in zoo_tags(game)]


def _targets(choice: Choice, games: Sequence[str]) -> list[list[str]]:
    return [[choice.env_id(game), TARGET_VICTIMS.get(game, "1")] for game in games]


def _attack_axes(pairs: list[list[str]], seeds: int | Sequence[int]) -> dict[str, Axis]:
    seeds = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    return {"env_name:embed_path": pairs, "seed": seeds}


def _algorithm(game: str) -> str:
    """The one that fine-tunes the published policies of a game."""
    return "recurrent_ppo" if ZOO_GAMES[canonical_game(game)].recurrent else "ppo"


def _finetune_axes(pairs: list[list[str]], seeds: int = 3) -> dict[str, Axis]:
    """The adversary starts from the published policy of the same tag as its victim."""
    joint = [[env, tag, {"type": "zoo", "path": tag}, _algorithm(env)] for env, tag in pairs]
    return {"env_name:embed_path:load_policy:rl_algo": joint, "seed": list(range(seeds))}


_FINETUNE = {"normalize_observations": False}


def _hyper(choice: Choice) -> Grid:
    axes = {
        "env_name:embed_path": _targets(choice, ("KickAndDefend", "SumoHumans")),
        **SEARCH_AXES,
        "rl_args.nminibatches": PowerOfTwo(0, 7),
    }
    train = _sparse({"checkpoint_interval": 2**19, "total_timesteps": 3_000_000})
    return Grid("hyper", train, axes, num_samples=100)


def _attack_fast_search(choice: Choice) -> Grid:
    """Where the preset `attack_fast` of `aprl.train` comes from; meant for ASHA."""
    axes: dict[str, Axis] = {
        "learning_rate": LogUniform(1e-4, 2e-3),
        "rl_args.n_epochs": RandInt(3, 13),
        "rl_args.nminibatches": PowerOfTwo(2, 8),
        "rl_args.gamma": Uniform(0.985, 0.999),
        "rl_args.gae_lambda": Uniform(0.9, 0.99),
        "rl_args.ent_coef": Uniform(0.0, 0.005),
        "rl_args.log_std_init": Uniform(-1.5, 0.2),
        "batch_size": PowerOfTwo(12, 15),
        "num_env": PowerOfTwo(5, 8),
    }
    train = {
        "env_name": choice.env_id("YouShallNotPassHumans"),
        "embed_path": "1",
        "learning_rate_schedule": "linear",
        "total_timesteps": 2_500_000,
        "checkpoint_interval": 2**19,
    }
    return Grid("attack_fast_search", _sparse(train), axes, num_samples=24)


def _best_guess(choice: Choice) -> Grid:
    return Grid("best_guess", _sparse(PAPER_HYPERPARAMS), _attack_axes(_victims(choice), 3))


def _paper(choice: Choice) -> Grid:
    return Grid("paper", _sparse(PAPER_HYPERPARAMS), _attack_axes(_victims(choice), 5))


def _some_victims(choice: Choice, games: Sequence[str]) -> list[list[str]]:
    return [[choice.env_id(game), tag] for game in games for tag in ("1", "2", "3")]


def _dec2018rep(choice: Choice) -> Grid:
    train = {"rew_shape": True, "total_timesteps": 5_000_000, **OPPONENTS_FIRST_STEPS}
    axes = {
        **_attack_axes(_some_victims(choice, ("KickAndDefend", "SumoAnts")), 3),
        "rew_shape_params.anneal_frac": [0.0, 0.1],
    }
    return Grid("dec2018rep", train, axes)


_DENSE = merged(
    PAPER_HYPERPARAMS,
    {
        "total_timesteps": 40_000_000,
        "rew_shape": True,
        "rew_shape_params": {"anneal_frac": 0.25},
    },
)


def _dense_env_reward(choice: Choice) -> Grid:
    pairs = _victims(choice, ("SumoHumansAutoContact", "YouShallNotPassHumans"))
    return Grid("dense_env_reward", _DENSE, _attack_axes(pairs, 3))


def _dense_env_reward_anneal_search(choice: Choice) -> Grid:
    axes: dict[str, Axis] = {
        "env_name:embed_path": [[choice.env_id("SumoHumansAutoContact"), "3"]],
        "rew_shape_params.anneal_frac": Uniform(0.0, 1.0),
        "seed": RandInt(0, 1000),
    }
    return Grid("dense_env_reward_anneal_search", _DENSE, axes, num_samples=10)


def _kick_and_defend_sparse_vs_dense(choice: Choice) -> Grid:
    axes = {
        "rew_shape_params.anneal_frac": [0.0, 0.25],
        **_attack_axes(_victims(choice, ("KickAndDefend",)), [10, 20, 30, 40, 50]),
    }
    train = {**PAPER_HYPERPARAMS, "rew_shape": True}
    return Grid("kick_and_defend_sparse_vs_dense", train, axes)


def _single_agent_baseline(choice: Choice) -> Grid:
    train = {
        "rew_shape": False,
        "embed_types": [],
        "embed_paths": [],
        "total_timesteps": 5_000_000,
        "batch_size": 2048,
    }
    axes: dict[str, Axis] = {"env_name": list(BASELINE_IDS), "seed": [0, 1, 2]}
    return Grid("single_agent_baseline", train, axes)


def _vec_normalize(choice: Choice) -> Grid:
    train = _sparse({"total_timesteps": 5_000_000}, OPPONENTS_FIRST_STEPS)
    axes = {
        **_attack_axes(_some_victims(choice, ("KickAndDefend", "SumoAnts")), 3),
        "normalize": [True, False],
    }
    return Grid("vec_normalize", train, axes)


def _finetune_nolearn(choice: Choice) -> Grid:
    pairs = [[choice.env_id(game), "1"] for game in ("SumoHumans", "RunToGoalHumans")]
    train = {"total_timesteps": 1_000_000, "learning_rate": 0.0, **_FINETUNE}
    return Grid("finetune_nolearn", train, _finetune_axes(pairs, 1))


def _gym_compete_from_scratch(choice: Choice) -> Grid:
    axes = {
        **_attack_axes(_targets(choice, ("KickAndDefend", "SumoHumans")), 3),
        "rl_algo": ["ppo", "recurrent_ppo"],  # BansalMlpPolicy and BansalLstmPolicy
    }
    train = _sparse({"total_timesteps": 5_000_000}, OPPONENTS_FIRST_STEPS)
    return Grid("gym_compete_from_scratch", train, axes)


def _finetune_best_guess(choice: Choice) -> Grid:
    train = _sparse(PAPER_HYPERPARAMS, _FINETUNE)
    return Grid("finetune_best_guess", train, _finetune_axes(_victims(choice)))


_GENTLE = {"batch_size": 32768, "learning_rate": 1e-4}
_LSTM_BATCH = {"num_env": 16, "batch_size": 16 * 128, "learning_rate": 1e-4}


def _finetune_gentle_mlp(choice: Choice) -> Grid:
    train = _sparse(PAPER_HYPERPARAMS, _FINETUNE, _GENTLE)
    return Grid("finetune_gentle_mlp", train, _finetune_axes(_victims(choice, MLP_GAMES)))


def _finetune_gentle_youshallnotpass(choice: Choice) -> Grid:
    train = _sparse(PAPER_HYPERPARAMS, _FINETUNE, _GENTLE, {"total_timesteps": 40_000_000})
    axes = _finetune_axes(_victims(choice, ("YouShallNotPassHumans",)))
    return Grid("finetune_gentle_youshallnotpass", train, axes)


def _finetune_gentle_lstm(choice: Choice) -> Grid:
    train = _sparse(PAPER_HYPERPARAMS, _FINETUNE, _LSTM_BATCH)
    axes = _finetune_axes(_victims(choice, ("SumoHumansAutoContact",)))
    return Grid("finetune_gentle_lstm", train, axes)


def _lstm_policies(choice: Choice) -> Grid:
    train = _sparse(
        _LSTM_BATCH,
        {
            "total_timesteps": 10_000_000,
            "rl_algo": "recurrent_ppo",
            "rl_args": {"ent_coef": 0.0, "nminibatches": 4, "noptepochs": 4},
        },
    )
    axes = {
        **_attack_axes(_targets(choice, LSTM_GAMES), 3),
        "rl_args.lstm_units": [256, 128],  # MlpLstmPolicy and BansalLstmPolicy
    }
    return Grid("lstm_policies", train, axes)


# The published opponent of the victim's tag is the base whose actions are perturbed.
_NOISE_BALL_KEY = "env_name:embed_path:attack_params.base_path"


def _noise_ball_search(choice: Choice) -> Grid:
    pairs = [[choice.env_id(game), "1"] for game in ("SumoHumansAutoContact", "KickAndDefend")]
    axes: dict[str, Axis] = {
        _NOISE_BALL_KEY: [[env, tag, tag] for env, tag in pairs],
        "attack_params.noise_val": LogUniform(0.01, 1.0),
        "seed": RandInt(0, 1000),
    }
    train = _sparse(PAPER_HYPERPARAMS, {"attack": "noise_ball"})
    return Grid("noise_ball_search", train, axes, num_samples=10)


def _noise_ball(choice: Choice) -> Grid:
    pairs = _victims(choice, ("SumoHumansAutoContact", "RunToGoalHumans"))
    axes: dict[str, Axis] = {
        _NOISE_BALL_KEY: [[env, tag, tag] for env, tag in pairs],
        "seed": [0, 1, 2],
    }
    more = {"attack": "noise_ball", "attack_params": {"noise_val": 1.0}}
    return Grid("noise_ball", _sparse(PAPER_HYPERPARAMS, more), axes)


def _defence_games(choice: Choice) -> Sequence[str]:
    return ("YouShallNotPassHumans",) if choice.only_mlp else GOOD_GAMES


def _defence_axes(choice: Choice) -> dict[str, Axis]:
    """Victims to harden; `dual` pairs each with every published normal opponent."""
    joint: list[list[Any]] = []
    for game in _defence_games(choice):
        for tag in zoo_tags(game):
            row = [choice.env_id(game), {"type": "zoo", "path": tag}, _algorithm(game)]
            if choice.dual:
                joint += [[*row, {"type": "zoo", "path": normal}] for normal in zoo_tags(game)]
            else:
                joint.append(row)
    key = "env_name:load_policy:rl_algo"
    return {f"{key}:normal_opponent" if choice.dual else key: joint}


def _defence_train(choice: Choice) -> dict[str, Any]:
    return {
        **_FINETUNE,
        "num_env": 16,
        "defence": "dual" if choice.dual else "single",
        "adversaries": choice.adversaries,
    }


def _finetune_defense(choice: Choice) -> Grid:
    train = _sparse(PAPER_HYPERPARAMS, _defence_train(choice))
    axes = {**_defence_axes(choice), "seed": list(range(5))}
    return Grid(choice.defence_name, train, axes)


def _hyper_finetune_defense(choice: Choice) -> Grid:
    train = _sparse(_defence_train(choice), {"total_timesteps": 10_000_000})
    axes = {**_defence_axes(choice), **SEARCH_AXES}
    samples = 100 if choice.only_mlp else 20
    return Grid(f"hyper_{choice.defence_name}", train, axes, samples)


def _hardened_axes(choice: Choice) -> tuple[dict[str, Axis], list[str]]:
    """Hardened victims, and with which policy their attackers start; and victims without one.

    Raises:
        ConfigError: no hardened victim at all.
        RunError: there are no finished runs in a tree.
    """
    hardened = best_policies(choice.hardened)
    earlier = None if choice.from_scratch else best_policies(choice.adversaries)
    joint: list[list[Any]] = []
    missing = []
    for game in _defence_games(choice):
        env, victim = choice.env_id(game), victim_index(game)
        for tag in zoo_tags(game):
            found = [b for b in hardened if (b.env_name, b.embed_index) == (env, 1 - victim)]
            best = next((b for b in found if b.path == tag), None)
            if best is None:
                missing.append(f"{env} victim {tag}: no hardened version in {choice.hardened}")
                continue
            load: dict[str, Any] = {"type": None, "path": None}
            algorithm = "ppo"
            if earlier is not None:
                of_victim = [b for b in earlier if (b.env_name, b.embed_index) == (env, victim)]
                adversary = next((b for b in of_victim if b.path == tag), None)
                if adversary is None:
                    missing.append(f"{env} victim {tag}: no adversary in {choice.adversaries}")
                    continue
                load = {"type": "ppo", "path": str(adversary.policy_dir)}
                algorithm = algorithm_of(adversary.policy_dir)
            joint.append([env, str(best.policy_dir), load, algorithm])
    if not joint:
        raise ConfigError(f"there is no hardened victim to attack: {'; '.join(missing)}")
    return {"env_name:embed_path:load_policy:rl_algo": joint}, missing


def algorithm_of(policy_dir: Path) -> str:
    """The algorithm that goes on from a saved policy."""
    network = read_header(policy_dir)["architecture"]["network"]
    return "recurrent_ppo" if network == LstmPolicy.network_name else "ppo"


def _against_train(choice: Choice) -> dict[str, Any]:
    start = {} if choice.from_scratch else _FINETUNE
    return {"embed_type": "ppo", "num_env": 16, **start}


def _against_name(choice: Choice, defence_name: str) -> str:
    start = "from_scratch" if choice.from_scratch else "finetune"
    return f"adv_{start}_against_{defence_name}"


def _adv_against_hardened(choice: Choice) -> Grid:
    axes, missing = _hardened_axes(choice)
    train = _sparse(PAPER_HYPERPARAMS, _against_train(choice))
    name = _against_name(choice, choice.defence_name)
    return Grid(name, train, {**axes, "seed": list(range(5))}, missing=missing)


def _hyper_adv_against_hardened(choice: Choice) -> Grid:
    axes, missing = _hardened_axes(choice)
    train = _sparse(_against_train(choice), {"total_timesteps": 10_000_000})
    name = f"hyper_{_against_name(choice, f'hyper_{choice.defence_name}')}"
    return Grid(name, train, {**axes, **SEARCH_AXES}, num_samples=2, missing=missing)


GRIDS: dict[str, Callable[[Choice], Grid]] = {
    "hyper": _hyper,
    "attack_fast_search": _attack_fast_search,
    "best_guess": _best_guess,
    "paper": _paper,
    "dec2018rep": _dec2018rep,
    "dense_env_reward": _dense_env_reward,
    "dense_env_reward_anneal_search": _dense_env_reward_anneal_search,
    "kick_and_defend_sparse_vs_dense": _kick_and_defend_sparse_vs_dense,
    "single_agent_baseline": _single_agent_baseline,
    "vec_normalize": _vec_normalize,
    "finetune_nolearn": _finetune_nolearn,
    "gym_compete_from_scratch": _gym_compete_from_scratch,
    "finetune_best_guess": _finetune_best_guess,
    "finetune_gentle_mlp": _finetune_gentle_mlp,
    "finetune_gentle_youshallnotpass": _finetune_gentle_youshallnotpass,
    "finetune_gentle_lstm": _finetune_gentle_lstm,
    "lstm_policies": _lstm_policies,
    "noise_ball_search": _noise_ball_search,
    "noise_ball": _noise_ball,
    "finetune_defense": _finetune_defense,
    "hyper_finetune_defense": _hyper_finetune_defense,
    "adv_against_hardened": _adv_against_hardened,
    "hyper_adv_against_hardened": _hyper_adv_against_hardened,
}
DEFENCE_GRIDS = (
    "finetune_defense",
    "hyper_finetune_defense",
    "adv_against_hardened",
    "hyper_adv_against_hardened",
)
AGAINST_GRIDS = ("adv_against_hardened", "hyper_adv_against_hardened")
GRID_ALIASES = {name.replace("defense", "defence"): name for name in GRIDS if "defense" in name}
