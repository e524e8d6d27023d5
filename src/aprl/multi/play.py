"""Play match-ups on Ray, keep what is played, stop early where that is asked for."""

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aprl.configs.checks import with_types
from aprl.envs.names import victim_index
from aprl.errors import AprlError, RunError, first_line
from aprl.files import read_json, write_json
from aprl.multi.cluster import connected, require_cpus
from aprl.multi.matchups import Matchup
from aprl.multi.score_config import MatchupsConfig
from aprl.score_agent import ScoreConfig, score
from aprl.scoring import Score
from aprl.sequential import StoppingPlan

if TYPE_CHECKING:
    import pandas as pd

# Entries that do not change what is played.
_ASIDE = ("root_dir", "progress", "num_threads", "zoo_dir", "video_params", "activations")


@dataclass(frozen=True)
class Pairing:
    """A match-up under one size of noise.

    Attributes:
        matchup: who plays.
        size: of the noise; None without.
        config: the whole `ScoreConfig`.
        ci_width: width of the interval at which it stops; None: after all games.
        ci_index: of the agent whose win rate that is about.
        look_games: games between looks.
    """

    matchup: Matchup
    size: float | None
    config: ScoreConfig
    ci_width: float | None
    ci_index: int
    look_games: int

    @property
    def key(self) -> list[Any]:
        """As in the scores' file: match-up, then size of the noise if there is one."""
        return [*self.matchup.key, *([] if self.size is None else [self.size])]

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides what is played, to recognise it again."""
        entries = {k: v for k, v in asdict(self.config).items() if k not in _ASIDE}
        if self.config.activations is None:
            del entries["activation_keys"]
        stopping = {"ci_width": self.ci_width, "look_games": self.look_games}
        return entries | (stopping if self.ci_width is not None else {})

    @property
    def plan(self) -> StoppingPlan | None:
        """When to stop early; None: never."""
        if self.ci_width is None:
            return None
        assert self.config.episodes is not None
        first = max(self.look_games, 100)
        return StoppingPlan.of(self.ci_width, self.config.episodes, first, self.look_games)


def pairings(config: MatchupsConfig) -> list[Pairing]:
    """All that is to be played.

    Raises:
        AprlError: bad input, or a policy that is missing.
    """
    config.check()
    found = []
    for matchup in config.matchups():
        for size in config.noise_sizes():
            pairing = _pairing(config, matchup, size)
            pairing.config.check()
            found.append(pairing)
    return found


def _pairing(config: MatchupsConfig, matchup: Matchup, size: float | None) -> Pairing:
    victim = victim_index(matchup.env_name)
    sides = {"victim": victim, "adversary": 1 - victim}
    (a_type, a_path), (b_type, b_path) = matchup.agents
    values: dict[str, Any] = {
        "num_threads": 1,
        "episodes": config.episodes,
        **config.score,
        "env_name": matchup.env_name,
        "agent_a_type": a_type,
        "agent_a_path": a_path,
        "agent_b_type": b_type,
        "agent_b_path": b_path,
        "root_dir": config.root_dir,
        "seed": config.seed,
        "progress": False,
    }
    if config.mask is not None:
        values["mask_agent_index"] = sides[config.mask]
        values["mask_agent_masking_type"] = config.masking_type
    if config.noise == "observations":
        values["mask_agent_masking_type"] = "additive_noise"
        values["mask_agent_noise"] = size
    elif config.noise is not None:
        values["noisy_agent_index"] = sides[config.noise.removesuffix("_actions")]
        values["noisy_agent_magnitude"] = size
    name = matchup.file_name if size is None else f"{matchup.file_name}_noise_{size:.6g}"
    if config.activations is not None:
        values["activations"] = str(Path(config.activations) / f"{name}.npz")
    if config.score.get("videos"):
        options = dict(config.score.get("video_params", {}))
        folder = Path(options.pop("save_dir", None) or Path(config.root_dir) / "videos")
        values["video_params"] = options | {"save_dir": str(folder / name)}
    return Pairing(
        matchup,
        size,
        with_types(ScoreConfig(**values)),
        config.ci_width,
        sides[config.ci_of],
        config.look_games,
    )


def play(pairing: Pairing) -> dict[str, Any]:
    """Play one pairing to its end.

    Returns:
        `Score.to_dict`; with early stopping, `interval<i>` of the agent that it is about is the
        interval under the stopping plan (see `aprl.sequential`), the other agent's is Wilson's.

    Raises:
        AprlError: a policy that is missing.
    """
    plan = pairing.plan
    if plan is None:
        return score(pairing.config).to_dict()
    total: Score | None = None
    before = 0
    seeds = np.random.SeedSequence(pairing.config.seed).generate_state(len(plan.looks))
    for number, seed in zip(plan.looks, seeds, strict=True):
        config = with_types(
            ScoreConfig(**asdict(pairing.config) | {"episodes": number - before, "seed": int(seed)})
        )
        played = score(config)
        total = played if total is None else total + played
        before = number
        if plan.stops(total.wins[pairing.ci_index], total.games):
            break
    assert total is not None
    result = total.to_dict()
    interval = plan.interval(total.wins[pairing.ci_index], total.games)
    result[f"interval{pairing.ci_index}"] = list(interval)
    return result


def play_all(
    todo: list[Pairing],
    config: MatchupsConfig,
    on_result: Callable[[Pairing, dict[str, Any]], None],
) -> list[tuple[Pairing, str]]:
    """Play pairings side by side on Ray.

    Args:
        todo: what to play.
        config: says where Ray is.
        on_result: told of each pairing that ended, with its scores.

    Returns:
        The pairings that failed, with why.
    """
    failed: list[tuple[Pairing, str]] = []
    if not todo:
        return failed
    with connected(config.ray_server, config.num_cpus) as ray:
        threads = max(p.config.num_threads or os.cpu_count() or 1 for p in todo)
        require_cpus(ray, threads, "a match-up")
        task = ray.remote(num_cpus=threads, max_retries=2)(_play_in)
        cwd = os.getcwd()
        pending = {task.remote(pairing, cwd): pairing for pairing in todo}
        while pending:
            [reference], _ = ray.wait(list(pending), num_returns=1)
            pairing = pending.pop(reference)
            try:
                on_result(pairing, ray.get(reference))
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if isinstance(error.cause, AprlError) else error
                failed.append((pairing, str(cause).strip().splitlines()[-1]))
            except ray.exceptions.RayError as error:  # the worker died, more than once
                failed.append((pairing, first_line(error)))
    return failed


def _play_in(pairing: Pairing, working_dir: str) -> dict[str, Any]:
    if Path(working_dir).is_dir():
        os.chdir(working_dir)
    return play(pairing)


class ScoresFile:
    """A JSON list of `{"k": key, "v": scores, "settings": ...}`, one entry per pairing played.

    `k` and `v` are as the original library had them: environment id, type and path of player 0 and
    of player 1, further keys; `win0`, `win1`, `ties`; with counts, rates and intervals beside.

    Args:
        path: of the file; it need not exist.

    Raises:
        RunError: a file that does not hold scores.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = read_scores(path) if path.exists() else []

    def known(self, pairing: Pairing) -> bool:
        """Whether a pairing was played already, under the same settings."""
        return any(
            entry["k"] == pairing.key and entry.get("settings") == pairing.settings
            for entry in self.entries
        )

    def add(self, pairing: Pairing, scores: dict[str, Any]) -> None:
        """Write a pairing's scores; an earlier entry with the same key is replaced."""
        self.entries = [entry for entry in self.entries if entry["k"] != pairing.key]
        self.entries.append({"k": pairing.key, "v": scores, "settings": pairing.settings})
        write_json(self.path, self.entries)


def read_scores(path: Path | str) -> list[dict[str, Any]]:
    """Entries of a scores' file; those of the original library are read too.

    Raises:
        RunError: it is missing, or does not hold scores; the file is named.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise RunError(f"{path} does not hold a list of scores")
    for entry in entries:
        key = entry.get("k") if isinstance(entry, dict) else None
        value = entry.get("v") if isinstance(entry, dict) else None
        if not isinstance(key, list) or len(key) < 5 or not isinstance(value, dict):
            raise RunError(f"{path}: {str(entry)[:80]} is no score of a match-up")
        for name in ("win0", "win1", "ties"):
            if type(value.get(name)) is not int or value[name] < 0:
                raise RunError(f"{path}: {name} of {key} is {value.get(name)!r}, not a count")
    return entries


def scores_frame(entries: Iterable[dict[str, Any]]) -> "pd.DataFrame":
    """One row per match-up, from the victim's and the opponent's side.

    Returns:
        `env_name`, `victim_type`, `victim_path`, `opponent_type`, `opponent_path`, `noise` (None
        without), `victim_wins`, `opponent_wins`, `ties`, `games`, and per side `<side>_rate`,
        `<side>_low` and `<side>_high` (95 % interval).
    """
    import pandas as pd

    from aprl.stats import WinRate

    rows = []
    for entry in entries:
        env_name, *players = entry["k"][:5]
        seats = [tuple(players[:2]), tuple(players[2:4])]
        side = victim_index(env_name)
        value = entry["v"]
        games = value["win0"] + value["win1"] + value["ties"]
        row = {
            "env_name": env_name,
            "victim_type": seats[side][0],
            "victim_path": seats[side][1],
            "opponent_type": seats[1 - side][0],
            "opponent_path": seats[1 - side][1],
            "noise": entry["k"][5] if len(entry["k"]) > 5 else None,
            "victim_wins": value[f"win{side}"],
            "opponent_wins": value[f"win{1 - side}"],
            "ties": value["ties"],
            "games": games,
        }
        for name, index in (("victim", side), ("opponent", 1 - side)):
            rate = WinRate(value[f"win{index}"], games)
            low, high = value.get(f"interval{index}", rate.interval)
            row |= {f"{name}_rate": rate.rate, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)
