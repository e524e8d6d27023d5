"""Finding the models that a preprocessing wrote, and naming them in figures."""

from collections.abc import Sequence
from pathlib import Path

from aprl.errors import ConfigError, RewardError, RunError
from aprl.files import read_json
from aprl.rewards import RewardNet, load_reward_net
from aprl.rewards.store import SUFFIXES

# Order of rows, and how shapings are called there.
ROW_TITLES = {
    "unshaped": "Unshaped",
    "dense": "Dense",
    "antidense": "Negative",
    "random": "Random",
}


def model_file(base: Path, objective: str) -> Path:
    """The file `{base}.{objective}.pt`, or `.safetensors`: the newer one if there are both.

    Raises:
        RewardError: there is none.
    """
    candidates = [Path(f"{base}.{objective}{suffix}") for suffix in SUFFIXES]
    found = [path for path in candidates if path.is_file()]
    if found:
        return max(found, key=lambda path: path.stat().st_mtime_ns)
    raise RewardError(
        f"there is no model {candidates[0]} (nor {SUFFIXES[1]}); write it with "
        f"python -m aprl.reward_preprocessing.preprocess with save_path={base} ..."
    )


def load_models(
    base_path: str, model_base_paths: Sequence[str], objectives: Sequence[str]
) -> list[dict[str, RewardNet]]:
    """Load each model in each of its versions.

    Args:
        base_path: folder that the paths are relative to.
        model_base_paths: prefixes, as `save_path` of the preprocessing.
        objectives: names of the versions.

    Raises:
        ConfigError: no paths are given.
        RewardError: a file is missing or damaged.
    """
    if not model_base_paths:
        raise ConfigError("model_base_paths is empty; give the save_path of at least one model")
    return [
        {o: load_reward_net(model_file(Path(base_path) / path, o)) for o in objectives}
        for path in model_base_paths
    ]


def shaping_name(path: str) -> str:
    """The shaping that a model's name ends in; the whole name if it ends otherwise."""
    name = Path(path).name
    last = name.rsplit("_", 1)[-1]
    return last if last in ROW_TITLES else name


def sorted_paths(paths: Sequence[str]) -> list[str]:
    """Paths in the order of the rows: unshaped, dense, antidense, random, then all others."""
    order = list(ROW_TITLES)

    def place(path: str) -> int:
        name = shaping_name(path)
        return order.index(name) if name in order else len(order)

    return sorted(paths, key=place)


def row_title(path: str) -> str:
    """How a model is called in figures."""
    return ROW_TITLES.get(shaping_name(path), shaping_name(path))


def certificate_rows(
    base_path: str, paths: Sequence[str], objectives: Sequence[str]
) -> list[list[str]]:
    """A table of what the certificates beside the models say, the headings first."""
    rows = [["model", "objective", "method", "before", "after", "certified"]]
    for path in paths:
        for objective in objectives:
            file = Path(f"{Path(base_path) / path}.{objective}.certificate.json")
            if not file.is_file():
                continue
            record = read_json(file)
            try:
                values = [f"{record[k]:.6f}" for k in ("objective_before", "objective_after")]
                verdict = "yes" if record["passed"] else "no"
                rows.append([Path(path).name, objective, record["method"], *values, verdict])
            except (KeyError, TypeError, ValueError):
                raise RunError(f"{file} is not a certificate") from None
    return rows if len(rows) > 1 else []
