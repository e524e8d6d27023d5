"""How exact preprocessing grows with the size of a gridworld.

`python experiments/reward_scaling.py [sizes] [objectives]`, for example `10,30,100 sparse_l1`.
One case per process, so that its peak memory is its own.
"""

import resource
import subprocess
import sys
import time

import numpy as np

from aprl.reward_preprocessing.certificate import certify
from aprl.reward_preprocessing.envs.mazes import Maze
from aprl.reward_preprocessing.objectives import get_objective
from aprl.reward_preprocessing.preprocessing import preprocess
from aprl.rewards.potentials import TabularPotential


def measure(size: int, reward: str, shaping: str, objective_name: str) -> None:
    maze = Maze(size, False, reward, shaping)
    net, mdp = maze.reward_net(), maze.mdp()
    objective, potential = get_objective(objective_name), TabularPotential(maze.num_states)
    wall, cpu = time.monotonic(), time.process_time()
    result = preprocess(net, mdp.table, objective, potential, maze.gamma)
    solved = time.monotonic() - wall, time.process_time() - cpu
    certificate = certify(
        net,
        result.reward,
        mdp.table,
        objective,
        method=result.method,
        lower_bound=result.lower_bound,
        mdp=mdp,
    )
    certificate.require()
    certified = time.process_time() - cpu - solved[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    gap = np.nan if certificate.optimum_gap is None else certificate.optimum_gap
    cells = (
        f"{size}x{size}",
        f"{len(mdp.table):,}",
        f"{reward}, {shaping}",
        objective_name,
        f"{certificate.objective_before:.6f}",
        f"{certificate.objective_after:.8f}",
        f"{gap:.0e}",
        *(f"{seconds:.1f}" for seconds in (*solved, certified)),
        f"{memory:.2f}",
    )
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    if len(sys.argv) == 5:
        measure(int(sys.argv[1]), *sys.argv[2:])
        return
    sizes = sys.argv[1].split(",") if len(sys.argv) > 1 else ["10", "20", "30", "50", "70", "100"]
    objectives = sys.argv[2].split(",") if len(sys.argv) > 2 else ["sparse_l1", "smooth_l1"]
    print("maze, transitions, reward, objective, before, after, gap, solve wall s, CPU s,")
    print("certificate CPU s, peak memory GiB")
    for objective in objectives:
        for size in sizes:
            for reward, shaping in (("goal", "dense"), ("path", "random")):
                case = [sys.executable, __file__, size, reward, shaping, objective]
                subprocess.run(case, check=True)


if __name__ == "__main__":
    main()
