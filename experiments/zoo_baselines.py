"""Published policies against each other, in both physics, beside the reference rates.

    python experiments/zoo_baselines.py --zoo data/agent_zoo --results experiments/RESULTS.md

Finished rows are kept in `--work` and not played again; delete that folder to start anew.
"""

import argparse
import time
from pathlib import Path

from aprl.files import atomic_path, read_json, write_json
from aprl.score_agent import ScoreConfig, score
from aprl.stats import WinRate, wilson_interval

# Game, zoo tag of both players, then per physics: reference games, wins of agent 0, of agent 1.
# Measured once with an independent port of the games on MuJoCo 3.14.0. Its fast physics had the
# ants that run to a goal tie too often, and ours has other contact there: that row's reference is
# that of -v0.
REFERENCE = [
    ("YouShallNotPassHumans", "1", {"v0": (400, 0.495, 0.505), "v1": (400, 0.532, 0.468)}),
    ("RunToGoalHumans", "1", {"v0": (200, 0.245, 0.475), "v1": (200, 0.275, 0.455)}),
    ("RunToGoalAnts", "1", {"v0": (200, 0.410, 0.570), "v1": (200, 0.410, 0.570)}),
    ("KickAndDefend", "1", {"v0": (200, 0.635, 0.355), "v1": (200, 0.560, 0.420)}),
    ("KickAndDefend", "2", {"v0": (200, 0.175, 0.810), "v1": (200, 0.135, 0.845)}),
    ("SumoHumans", "1", {"v0": (200, 0.760, 0.220), "v1": (200, 0.750, 0.230)}),
    ("SumoHumans", "2", {"v0": (200, 0.375, 0.455), "v1": (200, 0.445, 0.480)}),
    ("SumoHumans", "3", {"v0": (200, 0.365, 0.485), "v1": (200, 0.370, 0.415)}),
    ("SumoAnts", "1", {"v0": (200, 0.450, 0.320), "v1": (200, 0.370, 0.360)}),
    ("SumoAnts", "2", {"v0": (200, 0.360, 0.385), "v1": (200, 0.330, 0.285)}),
]
GAMES = {"YouShallNotPassHumans": 1000, "RunToGoalAnts": 2000}
DEFAULT_GAMES = 500
HEADING = "## Published policies against each other"


def play(game: str, tag: str, physics: str, args: argparse.Namespace) -> dict:
    episodes = args.episodes or GAMES.get(game, DEFAULT_GAMES)
    config = ScoreConfig(
        env_name=f"multicomp/{game}-{physics}",
        agent_a_path=tag,
        agent_b_path=tag,
        episodes=episodes,
        zoo_dir=args.zoo,
        num_threads=args.threads,
        seed=args.seed,
    )
    path = Path(args.work) / f"{game}-{tag}-{physics}-{episodes}-{args.seed}.json"
    if path.exists():
        return read_json(path)
    start = time.monotonic()
    row = score(config).to_dict() | {"seconds": round(time.monotonic() - start, 1)}
    write_json(path, row)
    return row


def agrees(row: dict, agent: int, reference: tuple[int, float, float]) -> bool:
    games, rate = reference[0], reference[1 + agent]
    low, high = wilson_interval(round(rate * games), games)
    return row[f"interval{agent}"][0] <= high and row[f"interval{agent}"][1] >= low


def table(args: argparse.Namespace) -> list[str]:
    lines = [
        HEADING,
        "",
        f"`python experiments/zoo_baselines.py --zoo data/agent_zoo`, seed {args.seed}; both "
        "sample their actions; every environment plays as many games. `ref.`: rates of an "
        "independent port, 200 games (You Shall Not Pass 400); `agree`: the two 95 % intervals "
        "overlap, for agent 0 and agent 1.",
        "",
        "| game | zoo | physics | agent 0 wins | ref. | agent 1 wins | ref. | ties | mean length "
        "| agree | s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for game, tag, references in REFERENCE:
        for physics, reference in references.items():
            row = play(game, tag, physics, args)
            rates = [str(WinRate(row[f"win{i}"], row["games"])) for i in range(2)]
            verdicts = ["yes" if agrees(row, i, reference) else "NO" for i in range(2)]
            cells = [game, tag, f"`-{physics}`"]
            for rate, known in zip(rates, reference[1:], strict=True):
                cells += [rate, f"{100 * known:.1f} %"]
            cells += [f"{row['ties']}/{row['games']}", f"{row['mean_length']:.0f}"]
            cells += [", ".join(verdicts), f"{row['seconds']:.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def replace_section(path: Path, lines: list[str]) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    before, found, rest = text.partition(HEADING + "\n")
    after = rest[rest.find("\n## ") + 1 :] if "\n## " in rest else ""
    body = "\n".join(lines) + "\n"
    with atomic_path(path) as temporary:
        head = before if found else before.rstrip() + "\n\n"
        temporary.write_text(head + body + ("\n" + after if after else ""), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zoo", default="data/agent_zoo", help="imported published policies")
    parser.add_argument("--work", default="runs/zoo_baselines", help="finished rows")
    parser.add_argument("--results", default=None, help="Markdown file to put the table into")
    parser.add_argument("--episodes", type=int, default=None, help="games per row")
    parser.add_argument("--threads", type=int, default=0, help="of the physics; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    Path(args.work).mkdir(parents=True, exist_ok=True)
    lines = table(args)
    if args.results:
        replace_section(Path(args.results), lines)


if __name__ == "__main__":
    main()
