"""Look up the best policy against each victim in a tree of runs: `python -m aprl.highest_win_rate`.

The result is cached in the tree, in `highest_win_policies_and_rates.json`, and computed anew when a
run was added, changed or removed. Paths of policies in it are relative to the tree, so that a tree
can be moved or copied. Win rates are those of training, and the best of several seeds is chosen by
them: evaluate the chosen policy on new games before quoting its win rate.
"""

import hashlib
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from aprl import __version__
from aprl.cli import ArgumentParser, run_cli
from aprl.envs.names import victim_index
from aprl.errors import AprlError, ConfigError, RunError
from aprl.files import PathLike, read_json, require_path, write_json
from aprl.runs import (
    FINAL_MODEL_DIR,
    GameCounts,
    RunRecord,
    find_runs,
    is_finished,
    read_run,
    read_status,
    run_stamp,
)
from aprl.stats import WinRate

if TYPE_CHECKING:
    import pandas as pd

CACHE_FILE = "highest_win_policies_and_rates.json"
EPISODE_WINDOW = 1000  # games that a run is judged by
FORMAT = 2  # format 1 had only policies and winrates

_NESTED = ("policies", "winrates", "counts", "intervals", "fingerprints")
_PATHLESS_TYPES = ("zero", "random")  # whatever their path says, the policy is the same

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Best:
    """The best policy of one (game, embedded index, path key).

    Attributes:
        policy_dir: absolute path of the policy.
        win_rate: share of games that the learner won in training; ties are games not won.
        losses: games that the embedded agent won.
        ties: games that nobody won.
        env_name: environment id.
        embed_index: index of the embedded agent in the game.
        path: the key, see `path_key`.
        fingerprint: SHA-256 of the weights of the policy that the key names, or None.
    """

    policy_dir: Path
    win_rate: WinRate
    losses: int
    ties: int
    env_name: str
    embed_index: int
    path: str
    fingerprint: str | None


@dataclass(frozen=True)
class BestPolicies:
    """Best policies of a tree; nested dicts are keyed by env_name, str(embed_index), path key.

    Attributes:
        run_dir: the tree.
        policies: policy directory relative to `run_dir`.
        winrates: share of games won.
        counts: `wins`, `losses`, `ties`, `games`.
        intervals: `[low, high]`, 95 % Wilson interval of the share.
        fingerprints: SHA-256 of the weights of the policy that the key names, or None.
        skipped: runs that were not considered: path relative to `run_dir`, and the reason, which
            starts with "unfinished", "damaged" or "unusable".
    """

    run_dir: Path
    policies: dict[str, dict[str, dict[str, str]]]
    winrates: dict[str, dict[str, dict[str, float]]]
    counts: dict[str, dict[str, dict[str, dict[str, int]]]]
    intervals: dict[str, dict[str, dict[str, list[float]]]]
    fingerprints: dict[str, dict[str, dict[str, str | None]]]
    skipped: list[tuple[str, str]]

    def __iter__(self) -> Iterator[Best]:
        """All entries, sorted by key."""
        for env_name, by_index in sorted(self.policies.items()):
            for index, by_path in sorted(by_index.items()):
                for path in sorted(by_path):
                    yield self._entry(env_name, index, path)

    def _entry(self, env_name: str, index: str, path: str) -> Best:
        counts = self.counts[env_name][index][path]
        return Best(
            policy_dir=(self.run_dir / self.policies[env_name][index][path]).absolute(),
            win_rate=WinRate(counts["wins"], counts["games"]),
            losses=counts["losses"],
            ties=counts["ties"],
            env_name=env_name,
            embed_index=int(index),
            path=path,
            fingerprint=self.fingerprints[env_name][index][path],
        )

    def lookup(
        self, env_name: str, embed_index: int, path: PathLike, fingerprint: str | None = None
    ) -> Best:
        """Find the best policy against one embedded policy.

        A key matches if it is `path` to the letter, else if it names the same place, with or
        without the trailing `final_model`, else if its policy has the same weights. The best of
        several that match equally well is returned.

        Args:
            env_name: environment id.
            embed_index: index of the embedded agent in the game.
            path: key, see `path_key`.
            fingerprint: SHA-256 of the embedded policy's weights, if known.

        Raises:
            RunError: nothing matches; the message lists the keys that exist.
        """
        path = str(path)
        entries = [e for e in self if e.env_name == env_name and e.embed_index == embed_index]
        matches = [e for e in entries if e.path == path]
        if not matches:
            place = _place(path)
            matches = [e for e in entries if _place(e.path) == place]
        if not matches and fingerprint is not None:
            matches = [e for e in entries if e.fingerprint == fingerprint]
        if not matches:
            known = ", ".join(f"{e.env_name} {e.embed_index} {e.path}" for e in self)
            raise RunError(
                f"{self.run_dir} has no policy trained in {env_name} with agent {embed_index} "
                f"played by {path}; there are (game, index, path): {known or 'none'}"
            )
        best = max(matches, key=lambda e: (e.win_rate.rate, e.win_rate.games))
        if None not in (fingerprint, best.fingerprint) and fingerprint != best.fingerprint:
            logger.warning(
                "%s: the policy at %s has changed since %s was trained against it",
                self.run_dir,
                path,
                best.policy_dir,
            )
        return best

    def to_frame(self) -> "pd.DataFrame":
        """One row per entry; `policy` is relative to `run_dir`, `low` and `high` are at 95 %."""
        import pandas as pd

        columns = "env_name embed_index embed_path policy win_rate low high wins losses ties games"
        rows = [
            (
                best.env_name,
                best.embed_index,
                best.path,
                self.policies[best.env_name][str(best.embed_index)][best.path],
                best.win_rate.rate,
                *best.win_rate.interval,
                best.win_rate.wins,
                best.losses,
                best.ties,
                best.win_rate.games,
            )
            for best in self
        ]
        return pd.DataFrame(rows, columns=columns.split())


def _place(path: str) -> str:
    return os.path.realpath(path).removesuffix(f"/{FINAL_MODEL_DIR}")


def best_policies(
    run_dir: PathLike, *, episode_window: int = EPISODE_WINDOW, refresh: bool = False
) -> BestPolicies:
    """Find, for each game and embedded policy, the run whose learner wins most.

    A run is judged by its newest rollouts that together hold at least `episode_window` finished
    games (by all of them if it has fewer). Equal win rates are decided by more games, then by more
    training steps, then by the path. Runs that are unfinished, damaged, or without a finished game
    are listed as skipped.

    Args:
        run_dir: tree of runs, searched in full.
        episode_window: number of games.
        refresh: compute anew even if the cached result is up to date.

    Raises:
        ConfigError: `episode_window` below 1.
        RunError: `run_dir` is empty, missing or has no finished run.
    """
    root = require_path(run_dir, "the tree of runs")
    best = _best_policies(root, episode_window, refresh)
    for path, reason in best.skipped:
        level = logging.WARNING if reason.startswith("damaged") else logging.INFO
        logger.log(level, "%s: skipped run %s: %s", run_dir, path, reason)
    return best


def _best_policies(run_dir: Path, episode_window: int, refresh: bool) -> BestPolicies:
    if type(episode_window) is not int or episode_window < 1:
        raise ConfigError(
            f"episode_window must be a whole number of games, at least 1, got {episode_window!r}"
        )
    runs = {run.relative_to(run_dir).as_posix(): run for run in find_runs(run_dir)}
    stamps = {name: _unfinished(run) or run_stamp(run) for name, run in runs.items()}
    cache = run_dir / CACHE_FILE
    if not refresh:
        cached = _read_cache(run_dir, episode_window, stamps)
        if cached is not None:
            return cached
    best, skipped = _compute(runs, stamps, episode_window)
    if not best:
        raise RunError(_nothing_found(run_dir, skipped))
    document: dict[str, Any] = {
        **_nested(best),
        "format": FORMAT,
        "tool_version": __version__,
        "episode_window": episode_window,
        "computed_from": {name: {"stamp": stamp} for name, stamp in stamps.items()},
    }
    for name, reason in skipped.items():
        document["computed_from"][name]["skipped"] = reason
    document["digest"] = _digest(document)
    try:
        write_json(cache, document)
    except OSError as error:
        logger.warning("cannot write %s (%s); the result is not cached", cache, error.strerror)
    return _from_document(run_dir, document)


def _unfinished(run: Path) -> str | None:
    """Reason to skip a run that has no final policy; None if it has one."""
    if is_finished(run):
        return None
    try:
        status, _ = read_status(run)
    except RunError as error:
        return _damaged(error, run)
    return f"unfinished: {f'status {status}' if status else 'no status file'}"


def _damaged(error: AprlError, run: Path) -> str:
    """Reason to skip a run, with paths relative to it: the tree may be moved."""
    return f"damaged: {str(error).replace(f'{run}/', '')}"


@dataclass(frozen=True)
class _Candidate:
    name: str
    record: RunRecord
    games: GameCounts
    key: tuple[str, str, str]

    @property
    def outcome(self) -> tuple[int, int]:
        """Games that the learner won, and lost."""
        learner = 1 - int(self.key[1])
        return self.games[learner], self.games[1 - learner]

    @property
    def win_rate(self) -> WinRate:
        return WinRate(self.outcome[0], self.games.games)

    @property
    def rank(self) -> tuple[float, int, int, str]:
        """Smaller is better."""
        rate = self.win_rate
        return -rate.rate, -rate.games, -self.record.num_timesteps, self.name


def _compute(
    runs: dict[str, Path], stamps: dict[str, str], episode_window: int
) -> tuple[list[_Candidate], dict[str, str]]:
    """The best candidate of each key, and the reasons for skipping the other runs."""
    best: dict[tuple[str, str, str], _Candidate] = {}
    skipped: dict[str, str] = {}
    for name, run in runs.items():
        if stamps[name].startswith(("unfinished", "damaged")):
            skipped[name] = stamps[name]
            continue
        try:
            record = read_run(run)
            victim = victim_index(record.env_name)
        except AprlError as error:
            skipped[name] = _damaged(error, run) if run.exists() else "unusable: just deleted"
            continue
        games = record.newest_games(episode_window)
        if record.embed_index is None:
            skipped[name] = "unusable: nothing is embedded"
        elif games.games == 0:
            skipped[name] = "unusable: no finished game was logged"
        else:
            key = (record.env_name, str(record.embed_index), path_key(record, victim))
            candidate = _Candidate(name, record, games, key)
            if key not in best or candidate.rank < best[key].rank:
                best[key] = candidate
    return list(best.values()), skipped


def path_key(record: RunRecord, victim: int) -> str:
    """Name of the policy that a run is indexed by.

    A run that fine-tunes the victim's own side is indexed by the policy that it started from, since
    one looks for "the hardened version of victim 1". Any other run is indexed by the embedded
    policy's path or zoo tag, several joined by `+`. Policies that are not files are named by their
    type: `zero`, `random`, `constant:0.5`.

    Args:
        record: a run with something embedded.
        victim: index that the victim plays in the game.
    """
    if _hardens_victim(record, victim):
        assert record.load_path is not None
        return record.load_path
    return "+".join(_policy_key(kind, path) for kind, path in record.embedded)


def _policy_key(kind: str, path: str) -> str:
    if kind in _PATHLESS_TYPES:
        return kind
    return f"{kind}:{path}" if kind == "constant" else path


def _hardens_victim(record: RunRecord, victim: int) -> bool:
    assert record.embed_index is not None
    return record.load_path is not None and 1 - record.embed_index == victim


def _fingerprint(record: RunRecord) -> str | None:
    """Hash of the policy that `path_key` names; of several, their hashes joined by `+`."""
    known = record.config.get("fingerprints")
    if not isinstance(known, dict):
        return None
    if _hardens_victim(record, victim_index(record.env_name)):
        hashes = [known.get("loaded")]
    else:
        embedded = known.get("embedded")
        hashes = embedded if isinstance(embedded, list) else []
        if len(hashes) != len(record.embedded):
            return None
    texts = [value for value in hashes if isinstance(value, str)]
    return "+".join(texts) if len(texts) == len(hashes) else None


def _nested(best: Sequence[_Candidate]) -> dict[str, Any]:
    nested: dict[str, Any] = {part: {} for part in _NESTED}
    for candidate in best:
        (wins, losses), win_rate = candidate.outcome, candidate.win_rate
        counts = {"wins": wins, "losses": losses, "ties": candidate.games.tie}
        values = {
            "policies": (Path(candidate.name) / FINAL_MODEL_DIR).as_posix(),
            "winrates": win_rate.rate,
            "counts": {**counts, "games": win_rate.games},
            "intervals": list(win_rate.interval),
            "fingerprints": _fingerprint(candidate.record),
        }
        env_name, index, path = candidate.key
        for part, value in values.items():
            nested[part].setdefault(env_name, {}).setdefault(index, {})[path] = value
    return nested


def _from_document(run_dir: Path, document: dict[str, Any]) -> BestPolicies:
    skipped = [
        (name, entry["skipped"])
        for name, entry in sorted(document["computed_from"].items())
        if "skipped" in entry
    ]
    return BestPolicies(run_dir, **{part: document[part] for part in _NESTED}, skipped=skipped)


def _read_cache(run_dir: Path, episode_window: int, stamps: dict[str, str]) -> BestPolicies | None:
    """The cached result, or None with a logged note if it has to be computed."""
    path = run_dir / CACHE_FILE
    if not path.exists():
        return None
    try:
        document = read_json(path)
    except RunError as error:
        logger.warning("%s; it is computed anew", error)
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        logger.warning("%s is not of format %d; it is computed anew", path, FORMAT)
        return None
    if document.pop("digest", None) != _digest(document):
        logger.warning("%s is damaged or was edited; it is computed anew", path)
        return None
    if (document.get("tool_version"), document.get("episode_window")) != (
        __version__,
        episode_window,
    ):
        logger.info("%s is of another version or episode_window; it is computed anew", path)
        return None
    found = {name: entry["stamp"] for name, entry in document["computed_from"].items()}
    if found != stamps:
        logger.info("runs under %s have changed since %s was written", run_dir, path.name)
        return None
    return _from_document(run_dir, document)


def _digest(document: dict[str, Any]) -> str:
    """SHA-256 (hex) of a cache's content, so that a damaged or edited one is not believed."""
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _nothing_found(run_dir: Path, skipped: dict[str, str]) -> str:
    message = f"no finished runs under {run_dir}"
    if not skipped:
        return f"{message}: there is no run in it (config.json beside rl/ or {FINAL_MODEL_DIR}/)"
    kinds = Counter(reason.split(":")[0] for reason in skipped.values())
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    shown = [f"{name} is {reason}" for name, reason in list(skipped.items())[:5]]
    more = [f"{len(skipped) - 5} more"] if len(skipped) > 5 else []
    return f"{message} that can be used ({counts}): {'; '.join(shown + more)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; see `--help`."""
    parser = ArgumentParser(
        prog="python -m aprl.highest_win_rate",
        description="Find the best policy against each victim in trees of training runs.",
    )
    parser.add_argument("run_dir", nargs="+", type=Path, help="tree of runs")
    parser.add_argument(
        "--episode-window",
        type=int,
        default=EPISODE_WINDOW,
        metavar="N",
        help="judge each run by its newest N games (default: %(default)s)",
    )
    parser.add_argument("--refresh", action="store_true", help="ignore the cached result")
    arguments = parser.parse_args(argv)
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000  # whole paths, on one line each
    for run_dir in arguments.run_dir:
        best = _best_policies(run_dir, arguments.episode_window, arguments.refresh)
        console.print(Text(str(run_dir)))
        console.print(_table(best))
        for path, reason in best.skipped:
            console.print(Text(f"skipped {path}: {reason}"))
    return 0


def _table(best: BestPolicies) -> Table:
    table = Table()
    for heading in ("game", "embedded", "against", "best policy", "wins [95 %] (of games)", "ties"):
        table.add_column(heading, overflow="fold")
    for entry in best:
        policy = best.policies[entry.env_name][str(entry.embed_index)][entry.path]
        cells = (entry.env_name, entry.embed_index, entry.path, policy, entry.win_rate, entry.ties)
        table.add_row(*(Text(str(cell)) for cell in cells))
    return table


if __name__ == "__main__":
    run_cli(main)
