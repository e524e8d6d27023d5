"""A game with its victim frozen, as Gymnasium environments."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_env_for_sb3

import aprl  # noqa: F401 - makes the id known
from aprl.errors import ConfigError, PolicyError

ANTS = {"game": "multicomp/RunToGoalAnts-v1", "victim_type": "zero"}
RPS = {"game": "aprl/RockPaperScissors-v0", "victim_type": "constant", "victim_path": 0}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("options", [ANTS, RPS])
def test_the_checkers_of_gymnasium_and_sb3_are_content(options):
    env = gymnasium.make("aprl/Attack-v0", **options)
    check_env(env.unwrapped, skip_render_check=True)
    check_env_for_sb3(env)


def batch(num_envs=3, **options):
    return gymnasium.make_vec(
        "aprl/Attack-v0",
        num_envs=num_envs,
        vectorization_mode="vector_entry_point",
        **(ANTS | options),
    )


def test_the_attacker_is_paid_its_own_reward():
    env = gymnasium.make("aprl/Attack-v0", **RPS)
    env.reset(seed=0)
    assert [env.step(a)[1] for a in (0, 1, 2)] == [0.0, 1.0, -1.0]  # against rock


def test_sparse_reward_is_the_outcome_alone():
    env = batch(reward="sparse", max_episode_steps=4)
    env.reset(seed=0)
    for _ in range(4):
        _, rewards, terminated, truncated, infos = env.step(env.action_space.sample())
        assert (rewards == 0).all()
    assert truncated.all() and not terminated.any()
    assert infos["final_info"]["winner"].tolist() == ["tie"] * 3
    assert not infos["final_info"]["is_success"].any()


def test_batches_give_the_last_observation_beside_the_next():
    env = batch(max_episode_steps=4)
    starts, _ = env.reset(seed=1)
    for _ in range(4):
        obs, _, _, truncated, infos = env.step(np.zeros((3, 8), np.float32))
    final = np.stack(infos["final_obs"])
    assert truncated.all() and final.shape == obs.shape
    assert (np.abs(final[:, 0] - starts[:, 0]) < 0.5).all()
    assert (obs[:, 0] != final[:, 0]).all()
    env.close()


@pytest.mark.parametrize("victim", ["zero", "random"])
def test_a_seed_fixes_starts_and_victim(victim):
    def run():
        env = batch(victim_type=victim)
        seen = [env.reset(seed=5)[0]]
        seen += [env.step(np.full((3, 8), 0.3, np.float32))[0] for _ in range(5)]
        return np.array(seen)

    np.testing.assert_array_equal(run(), run())


def test_one_environment_plays_as_a_batch_of_one():
    single = gymnasium.make(
        "aprl/Attack-v0", victim_path=None, **(ANTS | {"victim_type": "random"})
    )
    vector = batch(num_envs=1, victim_type="random", num_threads=1)
    np.testing.assert_array_equal(single.reset(seed=2)[0], vector.reset(seed=2)[0][0])
    for _ in range(5):
        action = np.full(8, 0.5, np.float32)
        np.testing.assert_array_equal(single.step(action)[0], vector.step(action[None])[0][0])


def test_the_attacker_takes_the_side_that_is_left():
    env = gymnasium.make("aprl/Attack-v0", victim_index=1, **ANTS).unwrapped
    first = env.reset(seed=0)[0]
    assert first[0] < 0  # agent 0 starts on the left
    env = gymnasium.make("aprl/Attack-v0", **ANTS).unwrapped
    assert env.reset(seed=0)[0][0] > 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"game": "multicomp/Chess-v1"}, ConfigError, "unknown env id"),
        ({"reward": "dense"}, ConfigError, "unknown reward 'dense'"),
        ({"victim_index": 2}, ConfigError, "victim_index must be 0 or 1, got 2"),
        ({"victim_type": "ppo", "victim_path": "nowhere"}, PolicyError, "nowhere does not exist"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bad_input_is_named(options, error, message):
    with pytest.raises(error, match=message):
        gymnasium.make("aprl/Attack-v0", **(ANTS | options))


def test_batches_take_one_seed():
    with pytest.raises(ConfigError, match="one seed is needed"):
        batch().reset(seed=[1, 2, 3])
