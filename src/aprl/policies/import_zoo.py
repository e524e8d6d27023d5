"""`python -m aprl.policies.import_zoo SOURCE`: convert the published zoo to this library's format.

SOURCE is the downloaded folder `agent_zoo` of the multi-agent competition environments, with a
folder per game (`<Game>-v0`) and a pickle per policy.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium import spaces

from aprl.cli import ArgumentParser, run_cli
from aprl.errors import PolicyError
from aprl.files import PathLike, sha256
from aprl.policies.network import ActorCriticMlp, MlpPolicy
from aprl.policies.recurrent import LstmPolicy
from aprl.policies.store import save_policy
from aprl.policies.unpickle import read_array_pickle
from aprl.policies.zoo import (
    DEFAULT_ZOO_DIR,
    ZOO_GAMES,
    ZooGame,
    decode,
    zoo_directory,
)

_FILE = re.compile(r"agent(?P<number>[12]?)_parameters-v(?P<tag>\d+)\.pkl")


@dataclass(frozen=True)
class ZooImport:
    """What became of one published file.

    Attributes:
        source: the file.
        game: name of the game.
        agent_index: 0 or 1; None where the policy plays either side.
        tag: number of the version.
        directory: the policy written, or None if the file was skipped.
        note: why it was skipped, or empty.
    """

    source: Path
    game: str
    agent_index: int | None
    tag: int
    directory: Path | None
    note: str = ""


def import_zoo(source: PathLike, out: PathLike = DEFAULT_ZOO_DIR) -> list[ZooImport]:
    """Convert every zoo policy under `source`; those already imported are replaced.

    Args:
        source: folder that holds `<Game>-v0/agent1_parameters-v1.pkl` and the like.
        out: root of the imported zoo.

    Returns:
        One entry per file with the name of a zoo policy, in the order of their paths.

    Raises:
        PolicyError: `source` is absent or holds no such file, or a file is damaged, of the wrong
            length, or no plain array. Policies before it in the list have been written.
    """
    source = Path(source)
    if not source.is_dir():
        raise PolicyError(f"zoo folder {source} does not exist")
    results = [_convert(*found, Path(out)) for found in _zoo_files(source)]
    if not results:
        raise PolicyError(
            f"no zoo policy in {source}; expected files like "
            "YouShallNotPassHumans-v0/agent1_parameters-v1.pkl"
        )
    return results


def _zoo_files(source: Path) -> Iterator[tuple[Path, str, int | None, int]]:
    """Yield path, game, agent index and tag of every published file that is there."""
    for game, entry in ZOO_GAMES.items():
        for path in sorted((source / f"{game}-v0").glob("*.pkl")):
            match = _FILE.fullmatch(path.name)
            if match and entry.symmetric == (not match["number"]):
                index = int(match["number"]) - 1 if match["number"] else None
                yield path, game, index, int(match["tag"])


def _convert(path: Path, game: str, agent_index: int | None, tag: int, out: Path) -> ZooImport:
    try:
        directory = zoo_directory(out, game, agent_index or 0, tag)
    except PolicyError as error:
        return ZooImport(path, game, agent_index, tag, None, str(error))
    entry = ZOO_GAMES[game]
    try:
        network = decode(read_array_pickle(path), entry)
    except PolicyError as error:
        text = str(error)
        raise PolicyError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    provenance = {
        "env_name": f"multicomp/{game}-v0",
        "agent_index": agent_index,
        "tag": tag,
        "source_file": f"{path.parent.name}/{path.name}",
        "source_sha256": sha256(path),
    }
    kind = MlpPolicy if isinstance(network, ActorCriticMlp) else LstmPolicy
    save_policy(kind(network, *_spaces(entry)), directory, provenance, kind="zoo")
    return ZooImport(path, game, agent_index, tag, directory)


def _spaces(entry: ZooGame) -> tuple[spaces.Box, spaces.Box]:
    bound = entry.action_bound
    return (
        spaces.Box(-np.inf, np.inf, (entry.obs_dim,), np.float32),
        spaces.Box(-bound, bound, (entry.act_dim,), np.float32),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code.

    Raises:
        AprlError: see `import_zoo`; or arguments that are not understood.
    """
    parser = ArgumentParser(
        prog="python -m aprl.policies.import_zoo",
        description="Convert the published agent_zoo folder to policies that aprl loads.",
    )
    parser.add_argument("source", help="downloaded folder agent_zoo, one folder per game in it")
    parser.add_argument("--out", default=DEFAULT_ZOO_DIR, help="default: %(default)s")
    args = parser.parse_args(argv)
    results = import_zoo(args.source, args.out)
    for result in results:
        verb = "imported" if result.directory else "skipped "
        print(f"{verb}  {result.source}  ->  {result.directory or result.note}")
    count = sum(result.directory is not None for result in results)
    print(f"{count} imported to {args.out}, {len(results) - count} skipped")
    return 0 if count else 1


if __name__ == "__main__":
    run_cli(main)
