"""Who plays whom: sets of victims and opponents, and the cross product of the two."""

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aprl.envs import check_env_id
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError
from aprl.files import read_json
from aprl.highest_win_rate import CACHE_FILE, best_policies
from aprl.multi.grids import zoo_tags
from aprl.policies.loader import POLICY_TYPES

FIXED = (("random", "none"), ("zero", "none"))

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Matchup:
    """A game and its two players.

    Attributes:
        env_name: environment id.
        agents: type and path of players 0 and 1.
    """

    env_name: str
    agents: tuple[tuple[str, str], tuple[str, str]]

    @property
    def key(self) -> list[str]:
        """Environment id, then type and path of player 0 and of player 1."""
        return [self.env_name, *self.agents[0], *self.agents[1]]

    @property
    def file_name(self) -> str:
        """A name for files about it, without suffix; no two match-ups share one."""
        side = victim_index(self.env_name)
        (kind, path), (their_kind, their_path) = self.agents[side], self.agents[1 - side]
        text = f"{self.env_name}_victim_{kind}_{path}_opponent_{their_kind}_{their_path}"
        plain = re.sub(r"[^A-Za-z0-9_.]+", "-", text)
        digest = hashlib.sha256(json.dumps(self.key).encode()).hexdigest()[:8]
        return f"{plain[:160]}_{digest}"


def agents_of(what: str, env_name: str, index: int, adversaries: str) -> list[tuple[str, str]]:
    """The policies that a set names, for one side of one game.

    Args:
        what: `zoo`, every published policy; `fixed`, one that acts at random and one that does
            nothing; `adversary:<run dir>`, the best policies of a tree of runs (`adversary`: of
            `adversaries`); `json:<path>`, the same from a `highest_win_policies_and_rates.json`, or
            of the tree that it is in; or a single policy as `<type>:<path>`.
        env_name: environment id.
        index: of the side.
        adversaries: a tree of runs.

    Returns:
        Type and path of each; empty, with a warning, if the set has nobody for this game and side.

    Raises:
        ConfigError: no such set.
        RunError: no such tree or file, or a damaged one.
    """
    kind, _, where = what.partition(":")
    if what == "zoo":
        return [("zoo", tag) for tag in zoo_tags(env_name)]
    if what == "fixed":
        return list(FIXED)
    if what == "adversary" or (kind == "adversary" and where):
        found = _of_tree(where or adversaries, env_name, index)
    elif kind == "json" and where:
        read = _of_tree if Path(where).is_dir() else _of_file
        found = read(where, env_name, index)
    elif kind in POLICY_TYPES and where:
        return [(kind, where)]
    else:
        raise ConfigError(
            f"unknown set of agents {what!r}; expected zoo, fixed, adversary:<run dir>, "
            "json:<path>, or a policy as ppo:<path>"
        )
    if not found:
        logger.warning("%s has nobody for agent %d of %s", what, index, env_name)
    return found


def _of_tree(tree: str, env_name: str, index: int) -> list[tuple[str, str]]:
    """Best policies of a tree against whoever plays the other side."""
    return [
        ("ppo", str(best.policy_dir))
        for best in best_policies(tree)
        if best.env_name == env_name and best.embed_index == 1 - index
    ]


def _of_file(file: str, env_name: str, index: int) -> list[tuple[str, str]]:
    path = Path(file)
    record = read_json(path)
    policies = record.get("policies") if isinstance(record, dict) else None
    if not isinstance(policies, dict):
        raise RunError(f"{path} has no policies; expected a {CACHE_FILE}")
    by_victim = policies.get(env_name, {}).get(str(1 - index), {})
    return [("ppo", str(path.parent / policy)) for policy in dict.fromkeys(by_victim.values())]


def cross(
    victims: Sequence[str], opponents: Sequence[str], env_names: Iterable[str], adversaries: str
) -> list[Matchup]:
    """Every victim against every opponent, in every game, without repetitions.

    Args:
        victims: sets of agents for the victim's side; see `agents_of`.
        opponents: for the other side.
        env_names: environment ids.
        adversaries: see `agents_of`.

    Raises:
        AprlError: see `agents_of`; or nobody plays anybody.
    """
    found: dict[Matchup, None] = {}
    for env_name in env_names:
        check_env_id(env_name)
        side = victim_index(env_name)
        ours = [a for what in victims for a in agents_of(what, env_name, side, adversaries)]
        theirs = [a for what in opponents for a in agents_of(what, env_name, 1 - side, adversaries)]
        for victim in ours:
            for opponent in theirs:
                seats = (victim, opponent) if side == 0 else (opponent, victim)
                found[Matchup(env_name, seats)] = None
    if not found:
        raise RunError(
            f"nobody plays anybody: victims {list(victims)} against opponents {list(opponents)}"
        )
    return list(found)
