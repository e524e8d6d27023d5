"""What a lean rollout stores is what SB3's own would."""

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium import spaces
from stable_baselines3.common.callbacks import BaseCallback

from aprl.envs import make_vec
from aprl.policies import ZeroPolicy
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv
from aprl.training.learner import make_ppo, ppo_arguments
from aprl.training.normalize import VecNormalize
from aprl.training.ppo import torch_threads
from tests.training.fakes import CountingPolicy, ScriptedGame

STEPS, ENVS = 9, 3
ARGUMENTS = ppo_arguments({"nminibatches": 1, "gamma": 0.9}, STEPS * ENVS, ENVS)


@pytest.fixture
def two_threads():
    """Two torch threads outside of rollouts, so that a change to one shows."""
    with torch_threads(2):
        yield


class EndingGame(ScriptedGame):
    """Episodes of environment 0 are cut by a time limit, those of 1 end, those of 2 go on.

    The learner is paid the sum of its actions; actions live in a narrow box.
    """

    def __init__(self, action_shape=(2,), fail_at=None):
        super().__init__([3, 4, 100])
        self.action_spaces = (spaces.Box(-0.5, 0.25, action_shape), self.action_spaces[1])
        self.fail_at = fail_at

    def step(self, actions):
        if len(self.actions) == self.fail_at:
            raise FloatingPointError("the game broke")
        obs, rewards, dones, infos = super().step(actions)
        if dones[0]:
            infos[0]["TimeLimit.truncated"] = True
        rewards[0] = actions[0].reshape(ENVS, -1).sum(axis=1)
        return obs, rewards, dones, infos


def ending_env(**options):
    return FlattenSingletonVecEnv(CurryVecEnv(EndingGame(**options), CountingPolicy(), 1), 0)


def rps_env():
    game = make_vec("aprl/RockPaperScissors-v0", ENVS, max_episode_steps=4)
    idle = ZeroPolicy(game.observation_spaces[0], game.action_spaces[0])
    return FlattenSingletonVecEnv(CurryVecEnv(game, idle, 1), 0)


class Recorder(BaseCallback):
    """Keeps what a step brought before bootstrapping; may stop or break the rollout."""

    def __init__(self, stop_after=None, fail=False):
        super().__init__()
        self.stop_after, self.fail = stop_after, fail
        self.rewards, self.infos, self.threads, self.events = [], [], [], []

    def _on_rollout_start(self):
        self.events.append("start")

    def _on_step(self):
        if self.fail:
            raise FloatingPointError("the callback broke")
        self.rewards.append(self.locals["rewards"].copy())
        self.infos.append(self.locals["infos"])
        self.threads.append(torch.get_num_threads())
        self.events.append("step")
        return self.stop_after is None or len(self.rewards) < self.stop_after

    def _on_rollout_end(self):
        self.events.append("end")


def learner_for(env):
    learner = make_ppo(env, ARGUMENTS, 0.0, seed=0)
    if hasattr(learner.policy, "log_std"):
        with torch.no_grad():
            learner.policy.log_std.copy_(torch.linspace(-1.0, 0.5, len(learner.policy.log_std)))
            learner.policy.value_net.weight.mul_(5.0)
    return learner


def begin(learner, recorder=None):
    """What `learn` does before it collects; returns the callback."""
    return learner._setup_learn(10**6, recorder or Recorder())[1]


def collect(learner, callback):
    return learner.collect_rollouts(learner.env, callback, learner.rollout_buffer, STEPS)


@pytest.mark.parametrize("normalised", [False, True])
def test_whole_rollouts_equal_sb3s_with_the_same_draws(normalised):
    envs = [ending_env(), ending_env()]
    if normalised:
        envs = [VecNormalize(e, norm_obs=True, norm_reward=True, gamma=0.9) for e in envs]
    ours = learner_for(envs[0])
    arguments = dict(ARGUMENTS)
    policy_kwargs = {
        **arguments.pop("policy_kwargs"),
        "net_arch": [64, 64],
        "activation_fn": torch.nn.Tanh,
    }
    theirs = stable_baselines3.PPO(
        "MlpPolicy", envs[1], device="cpu", policy_kwargs=policy_kwargs, **arguments
    )
    theirs.policy.load_state_dict(ours.policy.state_dict())
    ours._logger = theirs._logger = stable_baselines3.common.logger.Logger(None, [])
    callbacks = [begin(ours), begin(theirs)]
    for rollout in range(2):  # the second one begins in the middle of episodes
        for learner, callback in zip((ours, theirs), callbacks, strict=True):
            torch.manual_seed(rollout)
            assert collect(learner, callback)
        a, b = ours.rollout_buffer, theirs.rollout_buffer
        assert a.full and a.pos == b.pos == STEPS
        np.testing.assert_array_equal(a.episode_starts, b.episode_starts)
        for name in ("observations", "actions", "rewards", "values", "log_probs"):
            np.testing.assert_allclose(
                getattr(a, name), getattr(b, name), atol=1e-5, rtol=1e-5, err_msg=name
            )
        for name in ("advantages", "returns"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-4, rtol=1e-4)
        np.testing.assert_array_equal(ours._last_obs, theirs._last_obs)
        np.testing.assert_array_equal(ours._last_episode_starts, theirs._last_episode_starts)
        assert ours.num_timesteps == theirs.num_timesteps == (rollout + 1) * STEPS * ENVS
    assert list(ours.ep_info_buffer) == list(theirs.ep_info_buffer)
    assert len(ours.ep_info_buffer) == 6 + 4


def test_stored_values_and_log_probabilities_are_those_of_the_stored_actions():
    learner = learner_for(ending_env())
    collect(learner, begin(learner))
    buffer = learner.rollout_buffer
    obs = torch.from_numpy(buffer.observations.reshape(-1, 2))
    actions = torch.from_numpy(buffer.actions.reshape(-1, 2))
    with torch.no_grad():
        values, log_prob, _ = learner.policy.evaluate_actions(obs, actions)
    np.testing.assert_allclose(buffer.values.ravel(), values.numpy().ravel(), atol=1e-5)
    np.testing.assert_allclose(buffer.log_probs.ravel(), log_prob.numpy(), atol=1e-5)


def test_the_game_gets_clipped_actions_and_the_buffer_the_raw_ones():
    env = ending_env()
    learner = learner_for(env)
    collect(learner, begin(learner))
    stored = learner.rollout_buffer.actions
    assert stored.min() < -0.5 and stored.max() > 0.25
    played = np.array([actions[0] for actions in env.game.venv.actions])
    np.testing.assert_array_equal(played, np.clip(stored, -0.5, 0.25))


def test_actions_vary_as_the_policy_says():
    learner = learner_for(ending_env())
    callback = begin(learner)
    torch.manual_seed(0)
    deviations = []
    for _ in range(60):
        collect(learner, callback)
        obs = torch.from_numpy(learner.rollout_buffer.observations.reshape(-1, 2))
        with torch.no_grad():
            mean = learner.policy.get_distribution(obs).mode().numpy()
        deviations.append(learner.rollout_buffer.actions.reshape(-1, 2) - mean)
    noise = np.concatenate(deviations)  # 1620 draws: a standard deviation is within 2 %
    np.testing.assert_allclose(noise.std(axis=0), np.exp([-1.0, 0.5]), rtol=0.08)
    np.testing.assert_allclose(noise.mean(axis=0) / noise.std(axis=0), 0, atol=0.1)


def test_only_truncated_episodes_are_bootstrapped_from_their_last_observation():
    learner, recorder = learner_for(ending_env()), Recorder()
    collect(learner, begin(learner, recorder))
    rewards = learner.rollout_buffer.rewards
    truncated = 0
    for step, (raw, infos) in enumerate(zip(recorder.rewards, recorder.infos, strict=True)):
        for env, info in enumerate(infos):
            expected = raw[env]
            if info and env == 0:
                np.testing.assert_array_equal(info["terminal_observation"], [0, 3])
                last = torch.from_numpy(info["terminal_observation"][None])
                with torch.no_grad():
                    value = learner.policy.predict_values(last).item()
                assert abs(value) > 0.1
                expected += 0.9 * value
                truncated += 1
            assert rewards[step, env] == pytest.approx(expected, abs=1e-5)
    assert truncated == 3
    assert sum(bool(infos[1]) for infos in recorder.infos) == 2


@pytest.mark.parametrize("make_env", [ending_env, rps_env])
def test_one_thread_while_collecting_and_as_many_as_before_afterwards(make_env, two_threads):
    learner, recorder = learner_for(make_env()), Recorder()
    assert collect(learner, begin(learner, recorder))
    assert recorder.threads == [1] * STEPS
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("recorder", [Recorder(fail=True), Recorder()])
def test_threads_are_restored_when_something_breaks(recorder, two_threads):
    learner = learner_for(ending_env(fail_at=4))
    with pytest.raises(FloatingPointError, match="broke"):
        collect(learner, begin(learner, recorder))
    assert torch.get_num_threads() == 2
    with pytest.raises(ValueError, match="inside"), torch_threads(1):
        raise ValueError("inside")
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("make_env", [ending_env, rps_env])
def test_a_callback_stops_the_rollout(make_env, two_threads):
    learner, recorder = learner_for(make_env()), Recorder(stop_after=4)
    assert collect(learner, begin(learner, recorder)) is False
    assert recorder.events == ["start", *["step"] * 4]
    assert learner.num_timesteps == 4 * ENVS
    assert torch.get_num_threads() == 2


def test_a_stopped_rollout_ends_the_learning():
    learner, recorder = learner_for(ending_env()), Recorder(stop_after=STEPS + 2)
    learner.learn(10 * STEPS * ENVS, callback=recorder)
    assert recorder.events == ["start", *["step"] * STEPS, "end", "start", *["step"] * 2]
    assert learner.num_timesteps == (STEPS + 2) * ENVS
    assert learner._n_updates == ARGUMENTS["n_epochs"]  # no update on half a rollout


def test_actions_that_are_matrices_are_left_to_sb3():
    env = ending_env(action_shape=(2, 3))
    learner = learner_for(env)
    assert collect(learner, begin(learner))
    assert learner.rollout_buffer.actions.shape == (STEPS, ENVS, 6)
    assert env.game.venv.actions[0][0].shape == (ENVS, 2, 3)
