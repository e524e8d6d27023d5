"""Match-ups of the trained policy, before and after: the table that a defence is judged by."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from aprl.envs import make_vec
from aprl.errors import RunError
from aprl.files import read_json
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
    deterministic: bool = False


def opponents_of(config: TrainConfig) -> list[Opponent]:
    """Who the table is about: the embedded policies, and the normal opponent if one is named."""
    role = "adversary" if config.adversaries else "embedded"
    assert config.embed_types is not None and config.embed_paths is not None
    found = [
        Opponent(role, kind, path, config.embed_deterministic)
        for kind, path in zip(config.embed_types, config.embed_paths, strict=True)
    ]
    normal = config.normal_opponent
    if normal["path"] is not None:
        found.append(Opponent("normal opponent", normal["type"], normal["path"]))
    return found


def evaluate(
    config: TrainConfig,
    policy_type: str,
    policy_path: str | Path,
    after_step: Callable[[], None] | None = None,
) -> dict[str, Score]:
    """Play `config.eval_episodes` games of a saved policy against each opponent.

    Both sides sample their actions, but the embedded agent plays its mode if it did so in training
    (`embed_deterministic`). Starting states are the same every time and for every opponent.

    Args:
        config: resolved.
        policy_type: of the policy that was trained; see `load_policy`.
        policy_path: of the policy that was trained.
        after_step: called after each step; may raise to stop.

    Returns:
        Per opponent's role, the score by agent index of the game.
    """
    scores = {}
    for opponent in opponents_of(config):
        # Spawned anew: making a game draws children from its seed.
        seeds = np.random.SeedSequence(config.seed, spawn_key=(_EVALUATION_STREAM,)).spawn(3)
        assert config.eval_episodes
        num_envs = min(EVALUATION_ENVS, config.eval_episodes)
        options = replace(config, end_when_down=False, aside=0.0).env_options()
        display = ProgressDisplay(
            config.eval_episodes,
            enabled=config.progress,
            verb=f"scoring against {opponent.role}",
            unit="games",
        )

        def report(games: int, display: ProgressDisplay = display) -> None:
            display.update(games)
            if after_step is not None:
                after_step()

        with (
            contextlib.closing(display),
            contextlib.closing(make_vec(config.env_name, num_envs, seeds[0], **options)) as venv,
        ):
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
            scores[opponent.role] = play_games(
                venv,
                sides,
                config.eval_episodes,
                deterministic=[i != config.agent_idx and opponent.deterministic for i in range(2)],
                on_progress=report,
            )
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


def scores_to_json(scores: dict[str, dict[str, Score]]) -> dict[str, Any]:
    """Scores before and after, by opponent's role, as JSON types; see `Score.to_dict`."""
    return {
        when: {role: score.to_dict() for role, score in by_role.items()}
        for when, by_role in scores.items()
    }


def read_scores(path: Path) -> dict[str, dict[str, Score]]:
    """Read an evaluation file: what `scores_to_json` returned, under `before` and `after`.

    Returns:
        Those of the two that are there; nothing if there is no file.

    Raises:
        RunError: the file is damaged.
    """
    if not path.exists():
        return {}
    hint = "delete it, and the missing games are played when the run is resumed"
    try:
        record = read_json(path)
        return {
            when: {role: _score_from_json(values) for role, values in scores.items()}
            for when, scores in record.items()
        }
    except RunError as error:
        raise RunError(f"{error}; {hint}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RunError(f"{path} does not hold the scores of an evaluation; {hint}") from None


def _score_from_json(values: dict[str, Any]) -> Score:
    counts = [values[name] for name in ("win0", "win1", "ties", "unstable")]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("counts are whole numbers")
    return Score((counts[0], counts[1]), counts[2], counts[3], float(values["mean_length"]))
