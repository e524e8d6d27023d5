"""GAIL and AIRL against the `imitation` library, on the same demonstrations: steps, time, returns.

    python -m aprl.imitation.make_demonstrations with cartpole
    python -m aprl.imitation.make_demonstrations with swimmer
    python experiments/compare_imitation.py aprl cartpole
    python experiments/compare_imitation.py imitation cartpole

Prints one line of JSON per run. `imitation` is an oracle, not a dependency: install it in an
environment of its own, beside the dependencies of `aprl`, with `pip install --no-deps
imitation==1.0.1 seals huggingface_sb3 datasets huggingface_hub wasabi`, and run it there with
`PYTHONPATH=src`; Swimmer needs `imageio`.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from aprl.configs.imitation import NAMED_CONFIGS
from aprl.imitation.config import ImitationConfig
from aprl.imitation.demonstrations import load_demonstrations
from aprl.imitation.environments import GymVecEnv
from aprl.imitation.run import start_run
from aprl.stats import MeanEstimate

EVAL_EPISODES = 50
WINDOW = 100  # newest episodes that a training return is the mean of, as SB3 does


def demonstrations_of(task: str, directory: str) -> str:
    env_name = NAMED_CONFIGS[task]["env_name"]
    return str(Path(directory) / f"{env_name}.npz")


def clocks() -> tuple[float, float]:
    """Wall time, and the processor's time spent here: what the wall would be on a quiet machine."""
    return time.perf_counter(), time.process_time()


def elapsed(started: tuple[float, float]) -> tuple[float, float]:
    return tuple(now - then for now, then in zip(clocks(), started, strict=True))


def run_aprl(task: str, algorithm: str, schedule: str, seed: int, args: argparse.Namespace) -> dict:
    """One run; its curve is what an agent that still explores gets while it learns."""
    config = ImitationConfig(
        **{
            **NAMED_CONFIGS[task],
            **NAMED_CONFIGS[algorithm],
            "demonstrations": demonstrations_of(task, args.demonstrations),
            "learning_rate_schedule": schedule,
            "eval_episodes": EVAL_EPISODES,
            "seed": seed,
            "root_dir": args.out,
            "exp_name": f"{task}-{algorithm}-{schedule}-{seed}",
            "progress": False,
        }
    )
    run = start_run(config)
    started = clocks()
    run.train()
    seconds = elapsed(started)
    comparison = run.evaluate()
    log = np.genfromtxt(run.run_dir / "rl" / "progress.csv", delimiter=",", names=True)
    return {
        "steps": run.num_timesteps,
        "seconds": seconds,
        "learned": comparison.learned,
        "expert": comparison.expert.mean,
        "curve": list(zip(log["timetotal_timesteps"], log["rolloutep_rew_mean"], strict=True)),
    }


def run_imitation(
    task: str, algorithm: str, schedule: str, seed: int, args: argparse.Namespace
) -> dict:
    """The oracle: its documented discriminator settings, the same PPO, environments and steps."""
    from imitation.algorithms.adversarial.airl import AIRL
    from imitation.algorithms.adversarial.gail import GAIL
    from imitation.data.types import TrajectoryWithRew
    from imitation.rewards.reward_nets import BasicRewardNet, BasicShapedRewardNet
    from imitation.util.networks import RunningNorm
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy

    config = ImitationConfig(**NAMED_CONFIGS[task])
    loaded = load_demonstrations(demonstrations_of(task, args.demonstrations))
    expert = MeanEstimate.of([t.total_reward for t in loaded.trajectories]).mean
    demonstrations = [
        TrajectoryWithRew(
            obs=np.array(t.obs),
            acts=np.array(t.actions),
            infos=None,
            terminal=True,
            rews=np.array(t.rewards),
        )
        for t in loaded.trajectories
    ]
    venv = GymVecEnv(config.env_name, config.num_env, seed, config.horizon)
    arguments = config.ppo_arguments()
    arguments.pop("clip_range_vf")  # as imitation's own configs have it
    rate = config.learning_rate
    generator = PPO(
        "MlpPolicy",
        venv,
        learning_rate=rate if schedule == "constant" else lambda remaining: rate * remaining,
        seed=seed,
        device="cpu",
        **arguments,
    )
    airl = algorithm == "airl"
    net = (BasicShapedRewardNet if airl else BasicRewardNet)(
        venv.observation_space, venv.action_space, normalize_input_layer=RunningNorm
    )
    trainer = (AIRL if airl else GAIL)(
        demonstrations=demonstrations,
        demo_batch_size=2048 if airl else 1024,
        gen_replay_buffer_capacity=512,
        n_disc_updates_per_round=16 if airl else 8,
        venv=venv,
        gen_algo=generator,
        reward_net=net,
    )
    curve = []

    def on_round(_: int) -> None:
        returns = [info["r"] for info in generator.ep_info_buffer]
        if returns:
            curve.append((generator.num_timesteps, float(np.mean(returns[-WINDOW:]))))

    steps = config.total_timesteps * args.times
    started = clocks()
    trainer.train(steps, callback=on_round)
    seconds = elapsed(started)
    fresh = GymVecEnv(config.env_name, config.num_env, seed + 1000, config.horizon)
    returns, _ = evaluate_policy(
        generator, fresh, EVAL_EPISODES, deterministic=False, return_episode_rewards=True
    )
    return {
        "steps": generator.num_timesteps,
        "seconds": seconds,
        "learned": MeanEstimate.of(returns),
        "expert": expert,
        "curve": curve,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", choices=["aprl", "imitation"])
    parser.add_argument("task", choices=["cartpole", "swimmer"])
    parser.add_argument("--algorithms", nargs="+", default=["gail", "airl"])
    parser.add_argument("--schedules", nargs="+", default=["linear", "constant"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--times", type=int, default=1, help="the oracle's steps over ours")
    parser.add_argument("--demonstrations", default="data/demonstrations")
    parser.add_argument("--out", default="data/imitation")
    args = parser.parse_args()
    torch.set_num_threads(1)
    run = {"aprl": run_aprl, "imitation": run_imitation}[args.library]
    for algorithm in args.algorithms:
        for schedule in args.schedules:
            for seed in args.seeds:
                result = run(args.task, algorithm, schedule, seed, args)
                curve = result.pop("curve")
                wanted = 0.9 * result["expert"]
                learned = result.pop("learned")
                low, high = learned.interval
                print(
                    json.dumps(
                        {
                            "library": args.library,
                            "task": args.task,
                            "algorithm": algorithm,
                            "schedule": schedule,
                            "seed": seed,
                            "return": round(learned.mean, 1),
                            "interval": [round(low, 1), round(high, 1)],
                            "share_of_expert": round(learned.mean / result["expert"], 3),
                            "steps": int(result["steps"]),
                            "minutes": round(result["seconds"][0] / 60, 2),
                            "cpu_minutes": round(result["seconds"][1] / 60, 2),
                            "steps_to_90_percent": next(
                                (int(s) for s, r in curve if r >= wanted), None
                            ),
                        }
                    ),
                    flush=True,
                )


if __name__ == "__main__":
    main()
