"""Fine-tuning with learning rate 0 must leave a published victim as strong as it was.

    python experiments/finetune_nolearn.py --zoo data/agent_zoo

Per victim: games that it won in training (the learner samples and normalises), and as scored before
and after from its files. All three must agree within their intervals.
"""

import argparse
import tempfile

import pandas as pd

from aprl.configs.train import NAMED_CONFIGS
from aprl.runs import PROGRESS_FILE
from aprl.stats import WinRate, disjoint
from aprl.train import train
from aprl.training.config import TrainConfig

VICTIMS = [  # game, its victim's index, algorithm whose network the victim has
    ("multicomp/YouShallNotPassHumans-v1", 1, "ppo"),
    ("multicomp/SumoHumans-v1", 0, "recurrent_ppo"),
    ("multicomp/SumoAnts-v1", 0, "recurrent_ppo"),
]
GAMES = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", default="data/agent_zoo", help="imported published policies")
    args = parser.parse_args()
    print("| victim | in training | scored before | scored after | agree |")
    print("| --- | --- | --- | --- | --- |")
    for env_name, index, algorithm in VICTIMS:
        with tempfile.TemporaryDirectory() as root:
            config = TrainConfig(
                **NAMED_CONFIGS["finetune_nolearn"],
                root_dir=root,
                env_name=env_name,
                embed_index=1 - index,
                load_policy={"type": "zoo", "path": "1"},
                rl_algo=algorithm,
                total_timesteps=131_072,
                batch_size=16_384,
                eval_episodes=GAMES,
                zoo_dir=args.zoo,
                progress=False,
            )
            result = train(config)
            log = pd.read_csv(result.run_dir / PROGRESS_FILE)
        wins, games = int(log[f"game_count_win{index}"].sum()), int(log["game_total"].sum())
        assert result.before is not None
        rates = [WinRate(wins, games)]
        rates += [scores["embedded"].win_rate(index) for scores in (result.before, result.after)]
        agree = not any(disjoint(a, b) for a in rates for b in rates)
        cells = [f"`{env_name}` zoo 1", *map(str, rates), "yes" if agree else "NO"]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
