"""Every way to train, end to end on tiny games: it learns the best response, resumes exactly."""

import shutil

import numpy as np
import pytest

from aprl.envs import make_vec
from aprl.envs.crowded_line import shared_food_rewards
from aprl.errors import ConfigError
from aprl.files import read_json
from aprl.policies import ActorCriticMlp, ConstantPolicy, MlpPolicy, load_policy, save_policy
from aprl.runs import CHECKPOINT_DIR
from aprl.training.config import TrainConfig
from aprl.training.run import resume_run, start_run
from tests.training.test_run import metrics, weights

LINE, RPS = "aprl/CrowdedLinePair-v0", "aprl/RockPaperScissors-v0"
RIGHT = 1.0  # the victim accelerates to the right end and stays there
# Reward per step at the best place; the victim stands at 1 and each step moves on to 1.1 first.
BEST_RESPONSE = max(
    shared_food_rewards(np.array([[1.1], [x]]), np.array([-1.0, 1.0]))[1, 0]
    for x in np.linspace(-1, 1, 401)
)
SAC = {"gradient_steps": 64, "learning_starts": 500, "net_arch": [32, 32], "buffer_size": 50_000}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Network policies for the line: `right`, a victim that can be looked into, and `still`."""
    root = tmp_path_factory.mktemp("policies")
    game = make_vec(LINE, 1)
    seen, acted = game.observation_spaces[0], game.action_spaces[0]
    for name, bias in (("right", 3.0), ("still", 0.0)):
        network = ActorCriticMlp(2, 1, policy_layers=[4], value_layers=[4])
        network.policy_tower[-1].weight.data[:] *= 0.01
        network.policy_tower[-1].bias.data[:] = bias
        network.log_std.data[:] = -3.0
        save_policy(MlpPolicy(network, seen, acted), root / name, {})
    return root


def line(places, **changes):
    base = {
        "root_dir": str(places / "runs"),
        "env_name": LINE,
        "embed_type": "ppo",
        "embed_path": str(places / "right"),
        "num_env": 16,
        "batch_size": 800,
        "learning_rate": 3e-3,
        "total_timesteps": 16_000,
        "rl_args": {"gamma": 0.9, "nminibatches": 4, "noptepochs": 10, "log_std_init": -0.5},
        "rew_shape_params": {
            "weights": {"dense": {"reward_move": 1.0}, "sparse": {"reward_remaining": 1.0}},
            "anneal_frac": 0.0,
        },
        "progress": False,
    }
    return TrainConfig(**{**base, **changes})


def reward_per_step(policy_dir, index, opponent=RIGHT, env_name=LINE):
    """Mean reward over the second half of long episodes, the learner playing its mode."""
    game = make_vec(env_name, 64, seed=9)
    spaces = game.observation_spaces[index], game.action_spaces[index]
    policy = load_policy(
        "ppo",
        str(policy_dir),
        observation_space=spaces[0],
        action_space=spaces[1],
        env_name=env_name,
        index=index,
    )
    other = ConstantPolicy(*spaces, opponent)
    obs, state, starts, rewards = game.reset(), None, np.ones(64, bool), []
    for _ in range(49):
        actions = [None, None]
        actions[index], state = policy.predict(obs[index], state, starts, deterministic=True)
        actions[1 - index], _ = other.predict(obs[1 - index])
        obs, reward, starts, _ = game.step(actions)
        rewards.append(reward[index].mean())
    return np.mean(rewards[25:])


ATTACKS = {
    "baseline": {},
    "value_difference": {"coefficient": 0.5},
    "value_difference of the victim": {"estimator": "victim", "value_scale": 0.1},
    "intrinsic": {"scale": 0.1, "anneal_frac": 0.5},
    "intrinsic risk": {"kind": "risk", "scale": 0.05, "anneal_frac": 0.5},
    "noise_ball": {"noise_val": 1.0, "base_type": "ppo", "base_path": "still"},
    "lookback": {"lb_num": 2, "lb_mul": 0.001, "lb_type": "ppo", "lb_path": "still"},
}


def attack_changes(places, name):
    params = dict(ATTACKS[name])
    for key in ("base_path", "lb_path"):
        if key in params:
            params[key] = str(places / params[key])
    return {"attack": name.split()[0], "attack_params": params}


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_learns_the_best_response(places, name):
    run = start_run(line(places, **attack_changes(places, name)))
    before = reward_per_step(save_start(run, places), 1)
    policy = run.train()
    assert before < 0.22
    assert reward_per_step(policy, 1) == pytest.approx(BEST_RESPONSE, abs=0.015)


def save_start(run, places):
    """The policy before training."""
    shutil.rmtree(places / "start", ignore_errors=True)
    return run.save_policy(places / "start")


@pytest.mark.parametrize("algorithm", ["recurrent_ppo", "sac"])
def test_every_algorithm_learns_the_best_response(places, algorithm):
    rl_args = {"gamma": 0.9, **SAC} if algorithm == "sac" else line(places).rl_args
    config = line(
        places, rl_algo=algorithm, rl_args=rl_args, learning_rate=1e-3, total_timesteps=24_000
    )
    policy = start_run(config).train()
    assert reward_per_step(policy, 1) == pytest.approx(BEST_RESPONSE, abs=0.02)


@pytest.mark.parametrize("attack", [None, "baseline", "value_difference", "intrinsic"])
def test_attacks_on_a_game_of_choices(places, attack):
    config = line(
        places,
        env_name=RPS,
        embed_type="constant",
        embed_path="0",
        attack=attack,
        rl_args={"nminibatches": 4},
        learning_rate=1e-2,
    )
    assert reward_per_step(start_run(config).train(), 1, opponent=0, env_name=RPS) == 1.0


def test_noise_fades_out_and_the_best_response_is_learned(places):
    run = start_run(line(places, embed_noise=True, embed_noise_params={"anneal_frac": 0.5}))
    policy = run.train()
    assert reward_per_step(policy, 1) == pytest.approx(BEST_RESPONSE, abs=0.015)
    noise = [float(row["shaping/victim_noise"]) for row in metrics(run.run_dir)]
    assert noise[0] == pytest.approx(0.5 * (1 - 800 / 8_000)) and noise[-1] == 0
    assert sorted(noise, reverse=True) == noise


def test_conditional_annealing_in_a_run(places):
    shaping = {
        "weights": {"dense": {"reward_move": 1.0}, "sparse": {"reward_remaining": 1.0}},
        "metric": "length",
        "thresh": 49,
        "decay_factor": 0.9,
        "end_val": 0.3,
        "min_wait": 16,
    }
    run = start_run(line(places, rew_shape_params=shaping, total_timesteps=12_000))
    run.train()
    shares = [float(row["shaping/rew_anneal_c"]) for row in metrics(run.run_dir)]
    assert shares[0] == pytest.approx(0.9) and shares[-1] == pytest.approx(0.3)
    never = {**shaping, "thresh": 50}  # episodes are 50 steps long, not more
    run = start_run(line(places, rew_shape_params=never, total_timesteps=4_000))
    run.train()
    assert {row["shaping/rew_anneal_c"] for row in metrics(run.run_dir)} == {"1.0"}


def test_mixture_logs_each_member_and_is_answered_member_by_member(places):
    config = line(
        places,
        env_name=RPS,
        embed_type=None,
        embed_path=None,
        embed_types=["constant", "constant"],
        embed_paths=["0", "1"],
        embed_weights=[3, 1],
        rl_args={"nminibatches": 4},
        learning_rate=1e-2,
        num_env=32,
        batch_size=3200,
        total_timesteps=96_000,
    )
    run = start_run(config)
    policy = run.train()
    for opponent in (0, 1):  # the observation tells which member one plays
        assert reward_per_step(policy, 1, opponent=opponent, env_name=RPS) == 1.0
    rows = metrics(run.run_dir)
    games = [sum(int(row[f"embedded{m}/game_total"]) for row in rows) for m in (0, 1)]
    assert sum(games) == sum(int(row["game_total"]) for row in rows)
    assert games[0] > 2 * games[1] > 0


def test_transparent_runs_show_activations(places):
    run = start_run(line(places, transparent_params=["ff_policy", "obs"]))
    run.stack.venv.reset()
    infos = run.stack.venv.step(np.zeros((16, 1), np.float32))[3]
    assert infos[3][0]["ff_policy"].shape == (4,) and infos[3][0]["obs"].shape == (2,)


SHORT = {"total_timesteps": 2400, "batch_size": 800, "checkpoint_interval": 800}
RESUMED = {
    **{name: {} for name in ATTACKS},
    "mixture": {
        "embed_type": None,
        "embed_path": None,
        "embed_types": ["random", "constant", "zero"],
        "embed_paths": ["-", "0.5", "-"],
    },
    "noise": {
        "embed_noise": True,
        "embed_noise_params": {"metric": "sparse", "min_wait": 3, "thresh": -9},
    },
    "recurrent_ppo": {"rl_algo": "recurrent_ppo"},
    "sac": {"rl_algo": "sac", "rl_args": {**SAC, "gradient_steps": 4}},
}


@pytest.mark.parametrize("name", RESUMED)
def test_resumed_equals_uninterrupted(places, tmp_path, name):
    changes = {
        **SHORT,
        **RESUMED[name],
        **({} if name not in ATTACKS else attack_changes(places, name)),
    }
    whole = start_run(line(places, **changes))
    whole.train()
    stopped = tmp_path / "stopped"
    shutil.copytree(whole.run_dir, stopped)
    shutil.rmtree(stopped / "final_model")
    shutil.rmtree(stopped / CHECKPOINT_DIR / f"{1600:012d}")
    resumed = resume_run(stopped)
    assert resumed.learner.num_timesteps == 800
    resumed.train()
    assert metrics(stopped) == metrics(whole.run_dir)
    for part, expected in weights(whole.run_dir).items():
        np.testing.assert_array_equal(weights(stopped)[part], expected, err_msg=part)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"env_name": RPS, "embed_type": "zero", "rl_algo": "sac", "rl_args": {}},
            "sac needs cont",
        ),
        ({"env_name": RPS, "embed_type": "zero", "embed_noise": True}, "embed_noise needs cont"),
        ({"embed_type": "zero", "transparent_params": ["obs"]}, "ZeroPolicy has no activations"),
        (
            {"attack": "noise_ball", "attack_params": {"base_type": "ppo", "base_path": "nobody"}},
            "nobody does not exist",
        ),
    ],
)
def test_combinations_that_cannot_work_are_refused_before_anything_is_built(
    places, tmp_path, changes, message
):
    config = line(places, root_dir=str(tmp_path / "none"), **changes)
    config.rl_args.pop("log_std_init", None)
    with pytest.raises((ConfigError, Exception), match=message):
        start_run(config)
    assert not (tmp_path / "none").exists()


def test_fine_tuning_another_kind_of_network_is_refused(places, tmp_path):
    config = line(
        places,
        rl_algo="recurrent_ppo",
        rl_args={},
        load_policy={"type": "ppo", "path": str(places / "still")},
        normalize_observations=False,
    )
    with pytest.raises(ConfigError, match=r"fine-tunes a LstmPolicy, but .*MlpPolicy"):
        start_run(config)


@pytest.mark.parametrize("algorithm", ["recurrent_ppo", "sac"])
def test_fine_tuning_with_learning_rate_zero_changes_nothing(places, algorithm):
    rl_args = {"gamma": 0.9, **SAC} if algorithm == "sac" else {"gamma": 0.9}
    short = {**SHORT, "rl_algo": algorithm, "rl_args": rl_args}
    first = start_run(line(places, **short)).train()
    kept = {name: value for name, value in rl_args.items() if name != "net_arch"}
    again = start_run(
        line(
            places,
            **{**short, "rl_args": kept},
            learning_rate=0.0,
            load_policy={"type": algorithm, "path": str(first)},
            normalize_observations=False,
        )
    ).train()
    obs = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    game = make_vec(LINE, 1)

    def means(path):
        policy = load_policy(
            "ppo",
            str(path),
            observation_space=game.observation_spaces[1],
            action_space=game.action_spaces[1],
            env_name=LINE,
            index=1,
        )
        return policy.mean(obs)

    np.testing.assert_array_equal(means(first), means(again))
    assert read_json(again / "policy.json")["provenance"]["parents"][-1]["role"] == "loaded"
