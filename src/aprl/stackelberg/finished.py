"""Finished runs of a comparison on disk, so that one that was stopped can be continued."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aprl.errors import RunError
from aprl.files import PathLike, atomic_path

CURVE_POINTS = 101


@dataclass(frozen=True)
class Job:
    """One run of the comparison."""

    method: str
    world: str
    seed: int
    budget: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a job left.

    Attributes:
        job: what was run.
        solved_at: samples from which on the policy stays within 1 % of the optimum; may be inf.
        final: exact return of the last policy over the optimum.
        used: real samples taken.
        wall_time_s: of the run.
        curve: `(CURVE_POINTS,)` return over the optimum at equal steps from 0 to the budget; NaN
            before the first policy.
    """

    job: Job
    solved_at: float
    final: float
    used: int
    wall_time_s: float
    curve: np.ndarray


class FinishedRuns:
    """Outcomes by job, each written the moment it is there: one line of JSON, null for not finite.

    A last line that a kill or a full disk cut short is dropped.

    Args:
        path: of the file; read if it exists.

    Attributes:
        outcomes: so far.

    Raises:
        RunError: the file is damaged; the message names the line.
    """

    def __init__(self, path: PathLike) -> None:
        self._path = Path(path)
        self.outcomes: dict[Job, Outcome] = {}
        if not self._path.exists():
            return
        content = self._path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(complete.splitlines(), start=1):
            try:
                outcome = _from_json(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise RunError(
                    f"{self._path}, line {number}, is no finished run ({error}); "
                    "remove that line to do the run again"
                ) from None
            self.outcomes[outcome.job] = outcome
        if len(complete) < len(content):
            with atomic_path(self._path) as staged:
                staged.write_bytes(complete)

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome.

        Raises:
            RunError: it cannot be written.
        """
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(_to_json(outcome)) + "\n")
        except OSError as error:
            raise RunError(f"cannot write {self._path}: {error.strerror}") from None
        self.outcomes[outcome.job] = outcome


def _to_json(outcome: Outcome) -> dict[str, Any]:
    curve = [value if math.isfinite(value) else None for value in outcome.curve.tolist()]
    solved_at = outcome.solved_at if math.isfinite(outcome.solved_at) else None
    return {**asdict(outcome), "curve": curve, "solved_at": solved_at}


def _from_json(record: dict[str, Any]) -> Outcome:
    solved_at = record["solved_at"]
    curve = np.array(record["curve"], dtype=np.float64)
    if curve.shape != (CURVE_POINTS,):
        raise ValueError(f"a curve has {CURVE_POINTS} points, got {curve.shape}")
    return Outcome(
        Job(**record["job"]),
        math.inf if solved_at is None else float(solved_at),
        float(record["final"]),
        int(record["used"]),
        float(record["wall_time_s"]),
        curve,
    )
