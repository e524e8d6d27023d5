"""Match-ups of the trained policy, before and after: the table that a defence is judged by."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aprl.envs import make_vec
from aprl.policies.base import Policy
from aprl.policies.loader import load_policy
from aprl.scoring import Score, play_games
from aprl.stats import WinRate, disjoint
from aprl.training.config import TrainConfig
from aprl.training.records import ProgressDisplay

EVALUATION_ENVS = 64
_EVALUATION_STREAM = 1  # spawn key that keeps these games apart from the training games


@dataclass(frozen=True)
class Opponent:
    """Somebody to play the trained policy against."""

    role: str
    kind: str
    path: str


def opponents_of(config: TrainConfig) -> list[Opponent]:
    """Who the table is about: the embedded policies, and the normal opponent if one is named."""
    role = "adversary" if config.adversaries else "embedded"
    assert config.embed_types is not None and config.embed_paths is not None
    found = [
        Opponent(role, kind, path)
        for kind, path in zip(config.embed_types, config.embed_paths, strict=True)
    ]
    normal = config.normal_opponent
    if normal["path"] is not None:
        found.append(Opponent("normal opponent", normal["type"], normal["path"]))
    return found


def evaluate(config: TrainConfig, policy_type: str, policy_path: str | Path) -> dict[str, Score]:
    """Play `config.eval_episodes` games of a saved policy against each opponent.

    Both sides sample their actions. The same seed gives the same starting states every time.

    Returns:
        Per opponent's role, the score by agent index of the game.
    """
    seeds = np.random.SeedSequence(config.seed, spawn_key=(_EVALUATION_STREAM,)).spawn(3)
    scores = {}
    for opponent in opponents_of(config):
        num_envs = min(EVALUATION_ENVS, config.eval_episodes)
        options = replace(config, end_when_down=False, aside=0.0).env_options()
        venv = make_vec(config.env_name, num_envs, seeds[0], **options)
        sides: list[Policy] = []
        for index in range(2):
            ours = index == config.agent_idx
            sides.append(
                load_policy(
                    policy_type if ours else opponent.kind,
                    str(policy_path) if ours else opponent.path,
                    observation_space=venv.observation_spaces[index],
                    action_space=venv.action_spaces[index],
                    env_name=config.env_name,
                    index=index,
                    seed=seeds[1 + index],
                    zoo_dir=config.zoo_dir,
                )
            )
        display = ProgressDisplay(
            config.eval_episodes,
            enabled=config.progress,
            verb=f"scoring against {opponent.role}",
            unit="games",
        )
        try:
            scores[opponent.role] = play_games(
                venv, sides, config.eval_episodes, on_progress=display.update
            )
        finally:
            display.close()
        venv.close()
    return scores


def opponent_wins(config: TrainConfig, score: Score) -> WinRate:
    """Games that the opponent of the trained policy won."""
    return score.win_rate(1 - config.agent_idx)


def comparison_table(
    config: TrainConfig, before: dict[str, Score] | None, after: dict[str, Score]
) -> Table:
    """Opponents' win rates against the trained policy, before and after training."""
    table = Table(title=f"{config.env_name}: win rate against the trained policy (95 % Wilson)")
    table.add_column("opponent", no_wrap=True)
    for column in ("before", "after") if before else ("after",):
        table.add_column(column)
    if before:
        table.add_column("intervals", no_wrap=True)
    for role, score in after.items():
        late = opponent_wins(config, score)
        cells = [role]
        if before:
            early = opponent_wins(config, before[role])
            apart = "apart" if disjoint(early, late) else "overlap"
            cells += [str(early), str(late), apart]
        else:
            cells.append(str(late))
        table.add_row(*cells)
    return table


def scores_to_json(scores: dict[str, Score]) -> dict[str, Any]:
    """As JSON types; see `Score.to_dict`."""
    return {role: score.to_dict() for role, score in scores.items()}


def scores_from_json(values: dict[str, Any]) -> dict[str, Score]:
    """Read what `scores_to_json` returned."""
    return {
        role: Score(
            wins=(v["win0"], v["win1"]),
            ties=v["ties"],
            unstable=v["unstable"],
            mean_length=v["mean_length"],
        )
        for role, v in values.items()
    }
