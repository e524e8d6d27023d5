"""What the benchmarks share: bare physics, batched games, complete training, and the rival way."""

import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

from aprl.envs import make_vec
from aprl.envs.mujoco.rules import RESET_NOISE
from aprl.envs.mujoco.simulation import FRAME_SKIP
from aprl.envs.names import victim_index
from aprl.policies import (
    ActorCriticLstm,
    ActorCriticMlp,
    LstmPolicy,
    MlpPolicy,
    NetworkPolicy,
    save_policy,
)
from aprl.policies.loader import load_policy
from aprl.policies.store import load_saved
from aprl.training.config import TrainConfig
from aprl.training.embedding import CurryVecEnv, FlattenSingletonVecEnv, PolicyPlayer
from aprl.training.run import start_run

NUM_ENVS = 64
THREADS = 2
BATCH = 16384
EPISODE = 150  # steps between resets of the bare simulations, about a game's length


class BareSteps:
    """`mj_step` alone, in Python threads that own their data: random actions, regular resets.

    Args:
        model: of the game.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._data = [mujoco.MjData(model) for _ in range(THREADS)]
        self._rngs = [np.random.default_rng(thread) for thread in range(THREADS)]
        self._steps = [0] * THREADS

    def rate(self, seconds: float) -> float:
        """Environment steps per second, over about `seconds`."""
        before, begin = sum(self._steps), time.perf_counter()
        threads = [
            threading.Thread(target=self._work, args=(i, begin + seconds)) for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (sum(self._steps) - before) / (time.perf_counter() - begin)

    def _work(self, thread: int, end: float) -> None:
        model, data, rng = self._model, self._data[thread], self._rngs[thread]
        while time.perf_counter() < end:
            if self._steps[thread] % EPISODE == 0:
                mujoco.mj_resetData(model, data)
                data.qpos[:] += rng.uniform(-RESET_NOISE, RESET_NOISE, model.nq)
                data.qvel[:] = RESET_NOISE * rng.standard_normal(model.nv)
            data.ctrl[:] = rng.uniform(*model.actuator_ctrlrange.T)
            mujoco.mj_step(model, data, nstep=FRAME_SKIP)
            self._steps[thread] += 1


def random_actions(venv: Any, num_envs: int) -> np.ndarray:
    """64 steps of random actions, `(64, 2, num_envs, act_dim)`."""
    high = venv.action_spaces[0].high
    shape = (64, 2, num_envs, len(high))
    return np.random.default_rng(0).uniform(-high, high, shape).astype(np.float32)


class BatchSteps:
    """The batched game with given random actions, in the middle of its episodes."""

    def __init__(self, env_id: str, num_envs: int = NUM_ENVS, num_threads: int = THREADS) -> None:
        self._venv = make_vec(env_id, num_envs, num_threads=num_threads)
        self._actions = random_actions(self._venv, num_envs)
        self._venv.reset()
        self._step = 0
        for _ in range(EPISODE):
            self._advance()

    def _advance(self) -> None:
        self._venv.step(list(self._actions[self._step % 64]))
        self._step += 1

    def rate(self, seconds: float) -> float:
        """Environment steps per second, over about `seconds`."""
        before, begin = self._step, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            self._advance()
        steps = (self._step - before) * self._venv.num_envs
        return steps / (time.perf_counter() - begin)


class PlayedSteps:
    """The batched game between published policies; their own time does not count.

    Args:
        env_id: of the game.
        zoo_dir: imported published policies.
    """

    def __init__(self, env_id: str, zoo_dir: str) -> None:
        self._venv = make_vec(env_id, NUM_ENVS, num_threads=THREADS)
        self._players = [
            PolicyPlayer(
                load_policy(
                    "zoo",
                    "1",
                    observation_space=self._venv.observation_spaces[i],
                    action_space=self._venv.action_spaces[i],
                    env_name=env_id,
                    index=i,
                    zoo_dir=zoo_dir,
                ),
                NUM_ENVS,
            )
            for i in range(2)
        ]
        self._obs = self._venv.reset()
        for _ in range(EPISODE):
            self._advance()

    def _advance(self) -> float:
        actions = [player.act(obs) for player, obs in zip(self._players, self._obs, strict=True)]
        begin = time.perf_counter()
        self._obs, _, dones, _ = self._venv.step(actions)
        spent = time.perf_counter() - begin
        for player in self._players:
            player.observe_ends(dones)
        return spent

    def rate(self, seconds: float) -> float:
        """Environment steps per second of the game, over about `seconds` of its own."""
        spent, steps = 0.0, 0
        while spent < seconds:
            spent += self._advance()
            steps += NUM_ENVS
        return steps / spent


def take_turns(sources: Mapping[str, Any], args: Any) -> list[dict[str, float]]:
    """Rates of all sources, in `args.repeats` rounds of short turns of `args.seconds`.

    Other work on the machine comes and goes within seconds: what is compared must run side by side.
    """
    return [
        {name: source.rate(args.seconds) for name, source in sources.items()}
        for _ in range(args.repeats)
    ]


def median_ratio(rounds: Iterable[Mapping[str, float]], above: str, below: str) -> float:
    """Median over rounds of one rate relative to another."""
    return statistics.median(rates[above] / rates[below] for rates in rounds)


class Stopwatch:
    """Seconds spent in chosen methods of chosen objects."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def watch(self, label: str, owner: object, method: str) -> None:
        """Replace `owner.method` by itself with the time taken under `label`."""
        inner: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            begin = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds[label] += time.perf_counter() - begin

        setattr(owner, method, timed)


def training_rounds(
    env_id: str, victim: Path, updates: int, seconds: float, watch: Stopwatch | None = None
) -> list[dict[str, float]]:
    """`aprl`'s complete training beside bare physics, in environment steps per second.

    Args:
        env_id: of the game.
        victim: policy directory.
        updates: PPO updates to measure, after one of warm-up.
        seconds: of bare physics between updates.
        watch: is told where the time of the training goes.

    Returns:
        Per update, `training` and `bare`; the latter is the mean of just before and just after.
    """
    bare = BareSteps(make_vec(env_id, 1).model)  # type: ignore[attr-defined]
    with tempfile.TemporaryDirectory() as root:
        config = TrainConfig(
            root_dir=root,
            env_name=env_id,
            embed_type="ppo",
            embed_path=str(victim),
            num_env=NUM_ENVS,
            num_threads=THREADS,
            batch_size=BATCH,
            total_timesteps=BATCH * (updates + 1),
            checkpoint_interval=BATCH * 1000,
            rew_shape_params={"anneal_frac": 0.0},
            progress=False,
        )
        run = start_run(config)
        spent: list[float] = []
        physics: list[float] = []
        began = time.perf_counter()

        if watch is not None:
            game: Any = run.stack.game.unwrapped
            watch.watch("physics", game.sim, "step")
            watch.watch("observations", game.rules, "observe")
            watch.watch("rewards and winners", game.rules, "judge")
            watch.watch("resets", game, "_begin")
            player: Any = run.stack.game
            watch.watch("victim", player.player, "act")
            normaliser: Any = run.stack.normaliser
            for method in ("_update_obs", "normalize_obs", "_update_reward", "normalize_reward"):
                watch.watch("normaliser", normaliser, method)
            watch.watch("policy", run.learner, "_values_and_mean")
            watch.watch("update", run.learner, "train")
        finish_update = run.learner.train

        def update() -> None:
            nonlocal began
            finish_update()
            spent.append(time.perf_counter() - began)
            physics.append(bare.rate(seconds))
            if watch is not None and len(spent) == 1:
                watch.seconds.clear()
            began = time.perf_counter()

        run.learner.train = update  # type: ignore[method-assign]
        run.train()
    return [
        {"training": BATCH / spent[i], "bare": (physics[i - 1] + physics[i]) / 2}
        for i in range(1, len(spent))
    ]


class SingleAttack(gymnasium.Env):
    """One game against a victim: the environment a user would write by hand."""

    def __init__(self, env_id: str, victim: Path, seed: int) -> None:
        torch.set_num_threads(1)
        game = make_vec(env_id, 1, seed, num_threads=1)
        side = victim_index(env_id)
        self._env = FlattenSingletonVecEnv(
            CurryVecEnv(game, load_saved(victim, seed), side), 1 - side
        )
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple:
        """Begin an episode."""
        return self._env.reset()[0], {}

    def step(self, action: np.ndarray) -> tuple:
        """Play one step."""
        obs, _, dones, infos = self._env.step(action[None])
        reward = 0.01 * self._env.terms()["reward_remaining"][0]
        if dones[0]:  # the batch has already begun the next episode; hand out the last observation
            obs = infos[0].pop("terminal_observation")[None]
        return obs[0], float(reward), bool(dones[0]), False, {}


def subprocess_steps_per_second(env_id: str, victim: Path, processes: int, updates: int) -> float:
    """The same training on stock SB3: PPO, VecNormalize, SubprocVecEnv of single environments."""
    makers = [partial(SingleAttack, env_id, victim, i) for i in range(processes)]
    venv = VecNormalize(SubprocVecEnv(makers, start_method="forkserver"))
    torch.set_num_threads(THREADS)
    learner = stable_baselines3.PPO(
        "MlpPolicy",
        venv,
        n_steps=BATCH // processes,
        batch_size=BATCH // 4,
        n_epochs=4,
        clip_range_vf=0.2,
        device="cpu",
        seed=0,
    )
    begin = time.perf_counter()
    learner.learn(BATCH * updates)
    rate = BATCH * updates / (time.perf_counter() - begin)
    venv.close()
    return rate


def stand_in_victim(env_id: str, directory: Path, recurrent: bool = False) -> Path:
    """A victim of the published networks' size with arbitrary weights: speed does not care."""
    torch.manual_seed(0)
    game, side = make_vec(env_id, 1), victim_index(env_id)
    spaces = game.observation_spaces[side], game.action_spaces[side]
    sizes = spaces[0].shape[0], spaces[1].shape[0]  # type: ignore[index]
    policy: NetworkPolicy
    if recurrent:
        policy = LstmPolicy(ActorCriticLstm(*sizes), *spaces)
    else:
        policy = MlpPolicy(ActorCriticMlp(*sizes), *spaces)
    return save_policy(policy, directory, {"note": "random weights, for benchmarks"})
