"""What PyTorch's threads cost while they wait: PPO's updates alone, and beside a busy process.

One line per case: seconds of one update of two small networks on random observations. `spin` is
what OpenMP does unless told otherwise, `short` what importing `aprl` asks for (threads sleep after
1000 rounds of waiting), `sleep` does not wait at all, `one` is a single thread.

    python benchmarks/waiting_threads.py
"""

import json
import os
import subprocess
import sys
import time

CASES = {
    "spin": {"THREADS": "2"},
    "short": {"THREADS": "2", "GOMP_SPINCOUNT": "1000"},
    "sleep": {"THREADS": "2", "GOMP_SPINCOUNT": "0"},
    "one": {"THREADS": "1"},
}
# Rows of a rollout, rows of a minibatch, epochs: the paper's PPO and the quick one of `aprl.train`.
UPDATES = {"paper": (16384, 4096, 4), "small": (2048, 256, 10)}
BUSY = "while True: pass"


def seconds_of_updates(rows: int, minibatch: int, epochs: int, repeats: int = 3) -> float:
    """Median seconds of an update of two MLPs (64, 64) on 380 inputs, in this process."""
    import torch
    from torch import nn

    torch.set_num_threads(int(os.environ["THREADS"]))
    actor, critic = (
        nn.Sequential(nn.Linear(380, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n))
        for n in (17, 1)
    )
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], 1e-4)
    obs, target = torch.randn(rows, 380), torch.randn(rows, 1)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(epochs):
            for batch in torch.randperm(rows).split(minibatch):
                loss = actor(obs[batch]).square().mean()
                loss = loss + (critic(obs[batch]) - target[batch]).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        times.append(time.perf_counter() - start)
    return sorted(times)[repeats // 2]


def main() -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP", "GOMP"))}
    for beside in (0, 1):
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(beside)]
        try:
            for update, numbers in UPDATES.items():
                for case, settings in CASES.items():
                    command = [sys.executable, __file__, *map(str, numbers)]
                    done = subprocess.run(
                        command, env=kept | settings, capture_output=True, text=True, check=True
                    )
                    seconds = round(float(done.stdout), 3)
                    row = {"update": update, "busy processes": beside, "threads": case}
                    print(json.dumps(row | {"seconds": seconds}), flush=True)
        finally:
            for process in busy:
                process.kill()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(seconds_of_updates(*map(int, sys.argv[1:])))
    else:
        main()
