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
    """Who the table is about: the embedded policies, and the normal opponent if one is named.

    A defence's adversaries are called so, and numbered if there are several. A normal opponent that
    is embedded too is listed once.
    """
    assert config.embed_types is not None and config.embed_paths is not None
    normal = config.normal_opponent
    pairs = zip(config.embed_types, config.embed_paths, strict=True)
    embedded = [pair for pair in pairs if pair != (normal["type"], normal["path"])]
    role = "adversary" if config.defence or config.adversaries else "embedded"
    found = [
        Opponent(
            role if len(embedded) == 1 else f"{role} {number}",
            kind,
            path,
            config.embed_deterministic,
        )
        for number, (kind, path) in enumerate(embedded, start=1)
    ]
    if normal["path"] is not None:
        found.append(Opponent("normal opponent", normal["type"], normal["path"]))
    return found


def evaluate(
    config: TrainConfig,
    policy_type: str,
    policy_path: str | Path,
    after_step: Callable[[], None] | None = None,
    when: str = "after",
) -> dict[str, Score]:
    """Play `config.eval_episodes` games of a saved policy against each opponent.

    Args:
        config: resolved.
        policy_type: of the policy that was trained; see `load_policy`.
        policy_path: of the policy that was trained.
        after_step: called after each step; may raise to stop.
        when: "before" or "after" training, for the progress display.

    Returns:
        Per opponent's role, the score by agent index of the game.
    """
    ours = (policy_type, str(policy_path))
    return {
        opponent.role: evaluate_against(
            config, config.agent_idx, ours, opponent, after_step, f"scoring {when} training,"
        )
        for opponent in opponents_of(config)
    }


def evaluate_against(
    config: TrainConfig,
    index: int,
    ours: tuple[str, str],
    opponent: Opponent,
    after_step: Callable[[], None] | None = None,
    verb: str = "scoring",
) -> Score:
    """Play `config.eval_episodes` games of one policy against one opponent.

    Both sides sample their actions, but an opponent that is marked `deterministic` plays its mode.
    Starting states are the same every time and for every opponent; training aids are off.

    Args:
        config: of which the game, its options, the seed and `eval_episodes` are used.
        index: of our agent in the game.
        ours: type and path of the policy.
        opponent: plays the other agent.
        after_step: called after each step; may raise to stop.
        verb: what the progress display says is being done, before the opponent's role.
    """
    seeds = np.random.SeedSequence(config.seed, spawn_key=(_EVALUATION_STREAM,)).spawn(3)
    num_envs = min(EVALUATION_ENVS, config.eval_episodes)
    options = replace(config, end_when_down=False, aside=0.0).env_options()
    display = ProgressDisplay(
        config.eval_episodes,
        enabled=config.progress,
        verb=f"{verb} against {opponent.role}",
        unit="games",
    )

    def report(games: int) -> None:
        display.update(games)
        if after_step is not None:
            after_step()

    with (
        contextlib.closing(display),
        contextlib.closing(make_vec(config.env_name, num_envs, seeds[0], **options)) as venv,
    ):
        sides: list[Policy] = []
        for seat, seed in enumerate(seeds[1:]):
            kind, path = ours if seat == index else (opponent.kind, opponent.path)
            sides.append(
                load_policy(
                    kind,
                    path,
                    observation_space=venv.observation_spaces[seat],
                    action_space=venv.action_spaces[seat],
                    env_name=config.env_name,
                    index=seat,
                    seed=seed,
                    zoo_dir=config.zoo_dir,
                )
            )
        return play_games(
            venv,
            sides,
            config.eval_episodes,
            deterministic=[seat != index and opponent.deterministic for seat in range(2)],
            on_progress=report,
        )


def opponent_wins(config: TrainConfig, score: Score) -> WinRate:
    """Games that the opponent of the trained policy won."""
    return score.win_rate(1 - config.agent_idx)


def comparison_table(
    config: TrainConfig, before: dict[str, Score] | None, after: dict[str, Score]
) -> Table:
    """Outcomes of the trained policy's games against each opponent, before and after training."""
    table = Table(title=f"{config.env_name}: who won, with 95 % Wilson intervals", show_lines=True)
    for column in ("opponent", "training", "opponent wins", "trained policy wins", "ties"):
        table.add_column(column, no_wrap=True)
    for role, late in after.items():
        if before and role in before:
            table.add_row(role, "before", *_outcomes(config, before[role]))
        table.add_row(role, "after", *_outcomes(config, late))
    return table


def conclusions(
    config: TrainConfig, before: dict[str, Score], after: dict[str, Score]
) -> list[str]:
    """A sentence per opponent: what training did to its win rate, and whether by chance."""
    sentences = []
    for role in (role for role in after if role in before):
        early, late = (opponent_wins(config, scores[role]) for scores in (before, after))
        change = f"from {100 * early.rate:.1f} % to {100 * late.rate:.1f} %"
        if disjoint(early, late):
            verb = "fell" if late.rate < early.rate else "rose"
            sentences.append(f"{role}: its win rate {verb} {change}.")
        else:
            sentences.append(f"{role}: its win rate went {change}; that may be chance.")
    return sentences


def _outcomes(config: TrainConfig, score: Score) -> list[str]:
    own = score.win_rate(config.agent_idx)
    return [str(opponent_wins(config, score)), str(own), f"{score.ties}/{score.games}"]


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
            when: {role: Score.from_dict(values) for role, values in scores.items()}
            for when, scores in record.items()
        }
    except RunError as error:
        raise RunError(f"{error}; {hint}") from None
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RunError(f"{path} does not hold the scores of an evaluation; {hint}") from None
