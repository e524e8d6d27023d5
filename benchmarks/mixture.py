"""What a mixture of embedded players costs: four recurrent members against a single one.

Stepping of You Shall Not Pass, 32 environments, two threads, with random actions of the learner;
published-size LSTM players with arbitrary weights. `MultiCurryVecEnv` and `CurryVecEnv` take turns
of about a second; the median of the ratios of neighbouring turns counts. Run it on a quiet machine:
`python benchmarks/mixture.py`.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measure import median_ratio, random_actions, stand_in_victim, take_turns

from aprl.envs import make_vec
from aprl.envs.names import victim_index
from aprl.policies.store import load_saved
from aprl.training.embedding import CurryVecEnv
from aprl.training.mixture import MultiCurryVecEnv

GAME = "multicomp/YouShallNotPassHumans-v1"
NUM_ENVS = 32
WANTED = 1.3


class EmbeddedSteps:
    """The game with players embedded, stepped with random actions.

    Args:
        victim: policy directory of the players.
        members: how many; a single one is embedded by `CurryVecEnv`.
    """

    def __init__(self, victim: Path, members: int) -> None:
        game = make_vec(GAME, NUM_ENVS, num_threads=2)
        side = victim_index(GAME)
        self._actions = random_actions(game, NUM_ENVS)[:, 1 - side]
        players = [load_saved(victim, seed) for seed in range(members)]
        self._venv = (
            CurryVecEnv(game, players[0], side)
            if members == 1
            else MultiCurryVecEnv(game, players, side)
        )
        self._venv.reset()
        self._step = 0

    def rate(self, seconds: float) -> float:
        """Environment steps per second, over about `seconds`."""
        before, begin = self._step, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            self._venv.step([self._actions[self._step % len(self._actions)]])
            self._step += 1
        return (self._step - before) * NUM_ENVS / (time.perf_counter() - begin)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--repeats", type=int, default=15, help="rounds of turns")
    parser.add_argument("--members", type=int, nargs="+", default=[2, 4, 8])
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        victim = stand_in_victim(GAME, Path(folder) / "victim", recurrent=True)
        sources = {f"{n}": EmbeddedSteps(victim, n) for n in (1, *args.members)}
        rounds = take_turns(sources, args)
    rates = np.median([[r[name] for name in sources] for r in rounds], axis=0)
    print(f"{GAME}, {NUM_ENVS} environments, {args.repeats} rounds")
    for name, rate in zip(sources, rates, strict=True):
        ratio = median_ratio(rounds, "1", name)
        wanted = f" (wanted: at most {WANTED})" if name == "4" else ""
        print(f"{name} LSTM players: {rate:,.0f} steps/s, {ratio:.2f} x the time of one{wanted}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
