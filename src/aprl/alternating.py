"""Rounds of attack and defence: train an adversary, add it to the pool, fine-tune the victim.

`python -m aprl.train with finetune_defence defence=alternating` runs them. After each round, every
victim has played every adversary and the normal opponent: `matrix.json` in the run directory. Each
attack and defence is a run of its own in there; what is complete is not done again after a stop.
"""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from aprl.configs.checks import check_entries, with_types
from aprl.envs.names import victim_index
from aprl.errors import ConfigError, RunError
from aprl.files import read_json, write_json
from aprl.locks import DirectoryLock
from aprl.runs import CONFIG_FILE, FINAL_MODEL_DIR, new_run_dir
from aprl.scoring import Score
from aprl.stats import WinRate
from aprl.train import TrainResult, finish, resume
from aprl.training.config import TrainConfig
from aprl.training.defences import (
    Alternating,
    defend,
    make_defence,
    mixed,
    normal_opponent,
    victim_of,
)
from aprl.training.evaluate import Opponent, evaluate_against
from aprl.training.interruption import Interrupted
from aprl.training.run import start_run

ROUNDS_FILE = "rounds.json"
MATRIX_FILE = "matrix.json"
NORMAL = "normal opponent"
_ATTACK_DEFAULTS: dict[str, Any] = {
    "rew_shape_params": {"anneal_frac": 0.0},
    "end_when_down": False,
    "aside": 0.0,
}


def alternate(config: TrainConfig, console: Console | None = None) -> TrainResult:
    """Run all rounds of an alternating defence.

    Args:
        config: as given, not resolved, with `defence="alternating"`.
        console: where the matrix is printed; None prints nothing.

    Returns:
        The last victim; `before` and `after` are the scores of the first and of the last one
        against all opponents.

    Raises:
        AprlError: bad input, before anything is trained; or an output that cannot be written.
        Interrupted: by SIGINT or SIGTERM; `resume_rounds` goes on.
    """
    config = with_types(config)
    for entries in (_attack_config(config, *victim_of(config)), _check_defence(config)):
        entries.resolve()
    root = new_run_dir(config.root_dir, config.exp_name)
    write_json(root / CONFIG_FILE, config.to_dict())
    write_json(root / ROUNDS_FILE, {"stages": {}})
    return _Rounds(config, root, console).run()


def resume_rounds(
    run_dir: Path | str, console: Console | None = None, progress: bool | None = None
) -> TrainResult:
    """Go on with rounds that were interrupted.

    Args:
        run_dir: of the alternating run.
        console: see `alternate`.
        progress: show progress on the terminal; None does as the run's config says.

    Raises:
        RunError: no such run, or a file of it is damaged.
    """
    run_dir = Path(run_dir)
    try:
        config = with_types(TrainConfig.from_dict(read_json(run_dir / CONFIG_FILE)))
    except (ConfigError, AttributeError, TypeError) as error:
        raise RunError(f"{run_dir / CONFIG_FILE}: {error}") from None
    if progress is not None:
        config.progress = progress
    return _Rounds(config, run_dir, console).run()


def rounds_are_complete(run_dir: Path) -> bool:
    """Whether nothing of an alternating run is left to do.

    Raises:
        RunError: its record is missing or damaged.
    """
    record = read_json(run_dir / ROUNDS_FILE)
    return isinstance(record, dict) and bool(record.get("complete"))


def _parameters(config: TrainConfig) -> Alternating:
    defence = make_defence(Alternating.name, config.defence_params)
    assert isinstance(defence, Alternating)
    return defence


def _attack_config(config: TrainConfig, kind: str, victim: str) -> TrainConfig:
    """One attack on a victim, sparing what only concerns the defence."""
    given = _parameters(config)
    start = given.attack_start
    load: dict[str, Any] = {"type": None, "path": None}
    if start is None:
        load = dict(zip(("type", "path"), normal_opponent(config), strict=True))
    elif start:
        load = {"type": "ppo", "path": start}
    index = victim_index(config.env_name)
    entries = given.attack_config or {}
    check_entries(TrainConfig, entries)
    values = {
        **_ATTACK_DEFAULTS,
        **{k: v for k, v in asdict(config).items() if k not in _ATTACK_DEFAULTS},
        "load_policy": load,
        "normalize_observations": load["path"] is None,
        "embed_index": index,
        "embed_types": [kind],
        "embed_paths": [victim],
        "total_timesteps": given.attack_timesteps or config.total_timesteps,
        "adversaries": None,
        "normal_opponent": {"type": None, "path": None},
        "defence": None,
        "defence_params": {},
        "eval_episodes": 0,
        **entries,
    }
    return TrainConfig.from_dict(values)


def _defence_config(
    config: TrainConfig, victim: tuple[str, str], adversaries: list[str]
) -> TrainConfig:
    sparring = mixed(adversaries, [normal_opponent(config)], _parameters(config).normal_ratio)
    chosen = defend(config, sparring)
    return replace(
        chosen,
        load_policy={"type": victim[0], "path": victim[1]},
        adversaries=None,
        defence=None,
        defence_params={},
        eval_episodes=0,
    )


def _check_defence(config: TrainConfig) -> TrainConfig:
    """A defence like those to come, whose adversary is the normal opponent, to be checked."""
    return _defence_config(config, victim_of(config), [normal_opponent(config)[1]])


class _Rounds:
    """The rounds of one run directory."""

    def __init__(self, config: TrainConfig, root: Path, console: Console | None) -> None:
        self.config, self.root, self.console = config, root, console
        self.parameters = _parameters(config)
        self.record = read_json(root / ROUNDS_FILE)
        if not isinstance(self.record, dict) or not isinstance(self.record.get("stages"), dict):
            raise RunError(f"{root / ROUNDS_FILE} does not hold stages")

    def run(self) -> TrainResult:
        """Everything that is not done yet."""
        lock = DirectoryLock(self.root)
        lock.acquire()
        try:
            with Interrupted.as_of(self.root, "aprl.train"):
                return self._run()
        finally:
            lock.release()

    def _run(self) -> TrainResult:
        victims = [victim_of(self.config)]
        adversaries: list[str] = []
        for number in range(1, self.parameters.rounds + 1):
            attack = _attack_config(self.config, *victims[-1])
            adversaries.append(str(self._stage(f"round{number}-attack", attack)))
            defence = _defence_config(self.config, victims[-1], adversaries)
            hardened = self._stage(f"round{number}-defence", defence)
            victims.append(("ppo", str(hardened)))
            matrix = self._matrix(victims, adversaries)
            if self.console is not None:
                self.console.print(matrix_table(self.config, matrix))
        self.record["complete"] = True
        write_json(self.root / ROUNDS_FILE, self.record)
        names = list(matrix)
        return TrainResult(self.root, hardened, matrix[names[0]], matrix[names[-1]])

    def _stage(self, name: str, config: TrainConfig) -> Path:
        """The final policy of a stage, trained or continued as far as needed."""
        known = self.record["stages"].get(name)
        if known is not None and (self.root / known / FINAL_MODEL_DIR).is_dir():
            return self.root / known / FINAL_MODEL_DIR
        if self.console is not None:
            self.console.print(f"{name} ...")
        if known is not None and (self.root / known).is_dir():
            return resume(self.root / known, None, self.config.progress).policy_dir
        run = start_run(replace(config, root_dir=str(self.root), exp_name=name))
        self.record["stages"][name] = run.run_dir.name
        write_json(self.root / ROUNDS_FILE, self.record)
        return finish(run.config, run.directory, run, None).policy_dir

    def _matrix(
        self, victims: list[tuple[str, str]], adversaries: list[str]
    ) -> dict[str, dict[str, Score]]:
        """Scores by victim and opponent; those that are known are not played again."""
        path = self.root / MATRIX_FILE
        matrix = read_matrix(path)
        opponents = {f"adversary {i}": ("ppo", a) for i, a in enumerate(adversaries, start=1)}
        opponents[NORMAL] = normal_opponent(self.config)
        for number, victim in enumerate(victims):
            row = matrix.setdefault(f"victim {number}", {})
            for name, opponent in opponents.items():
                if name not in row and self.config.eval_episodes:
                    row[name] = evaluate_against(
                        self.config,
                        victim_index(self.config.env_name),
                        victim,
                        Opponent(name, *opponent),
                    )
                    write_json(path, _to_json(matrix))
        return matrix


def read_matrix(path: Path) -> dict[str, dict[str, Score]]:
    """Read a `matrix.json`; empty if there is none.

    Raises:
        RunError: the file is damaged.
    """
    if not path.exists():
        return {}
    try:
        return {
            victim: {name: Score.from_dict(score) for name, score in row.items()}
            for victim, row in read_json(path).items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise RunError(f"{path} is damaged; delete it, and its games are played again") from None


def _to_json(matrix: dict[str, dict[str, Score]]) -> dict[str, Any]:
    return {
        victim: {name: score.to_dict() for name, score in row.items()}
        for victim, row in matrix.items()
    }


def matrix_table(config: TrainConfig, matrix: dict[str, dict[str, Score]]) -> Table:
    """Opponents' win rates against each round's victim."""
    opponents = list(dict.fromkeys(name for row in matrix.values() for name in row))
    index = 1 - victim_index(config.env_name)
    table = Table(title=f"{config.env_name}: win rate against each victim (95 % Wilson)")
    table.add_column("opponent", no_wrap=True)
    for victim in matrix:
        table.add_column(victim)
    for name in opponents:
        rates: list[WinRate | str] = [
            row[name].win_rate(index) if name in row else "" for row in matrix.values()
        ]
        table.add_row(name, *map(str, rates))
    return table
