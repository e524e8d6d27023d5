"""Make a reward readable: `python -m aprl.reward_preprocessing.preprocess with env....`.

`preprocess_model` is the function behind the command; it knows nothing of Sacred.
"""

import math
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aprl.configs.checks import require_at_least
from aprl.errors import ConfigError, unknown_name
from aprl.experiment import CommandExperiment, as_plain, command_line, output, user_errors
from aprl.files import require_writable_directory, write_json
from aprl.reward_preprocessing.certificate import Certificate, certify
from aprl.reward_preprocessing.configs import (
    ENV_PART,
    PREPROCESS_NAMED,
    ROLLOUTS_PART,
    RUNS_DIR,
    RolloutsConfig,
    check_objectives,
    read_config,
)
from aprl.reward_preprocessing.data import Data, gather_data
from aprl.reward_preprocessing.environments import EnvConfig
from aprl.reward_preprocessing.envs import default_potential
from aprl.reward_preprocessing.gradient import GradientOptions
from aprl.reward_preprocessing.objectives import OBJECTIVES, Objective, get_objective
from aprl.reward_preprocessing.potential_plot import save_potential_plot
from aprl.reward_preprocessing.preprocessing import (
    METHODS,
    default_gradient_options,
    preprocess,
)
from aprl.reward_preprocessing.rollouts import parse_sources
from aprl.reward_preprocessing.trainable_potentials import make_potential
from aprl.reward_preprocessing.transitions import Transitions
from aprl.rewards import (
    RewardNet,
    ShapedRewardNet,
    load_reward_net,
    require_gamma,
    save_reward_net,
)
from aprl.rewards.potentials import Potential
from aprl.rewards.store import SUFFIXES
from aprl.training.records import ProgressDisplay


@dataclass
class PreprocessConfig:
    """Options of `aprl.reward_preprocessing.preprocess`."""

    root_dir: str = RUNS_DIR  # records of the experiment go to `sacred/preprocess` in here
    env: EnvConfig = field(default_factory=EnvConfig)
    rollouts: RolloutsConfig = field(default_factory=RolloutsConfig)
    model_path: str | None = None  # reward net, .pt or .safetensors, or the run that learned it
    save_path: str | None = None  # prefix of the files; {save_path}.{objective}.pt and others
    model_format: str = "pt"  # or "safetensors"
    objectives: list[str] = field(default_factory=lambda: list(OBJECTIVES))
    gamma: float = 0.99  # discount; the one that the reward was shaped with, if it was
    potential: str | None = None  # tabular, linear, mlp or critic; None: what suits the environment
    potential_options: dict[str, Any] = field(default_factory=dict)  # see `make_potential`
    method: str = "auto"  # or "exact" (linear programming), or "gradient"
    epochs: int | None = None  # of the gradient; None: enough for 2000 steps, 5 at least
    batch_size: int = 200  # terms of the objective per gradient step, on rollouts
    lr: float | None = None  # first rate, relative to the rewards' size; None: by the potential
    progress: bool = True  # show progress on the terminal
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot work, before anything is built or read.

        Raises:
            ConfigError: a wrong value.
        """
        for name, example in (("model_path", "results/..."), ("save_path", "results/...")):
            if not getattr(self, name):
                raise ConfigError(f"{name} is missing: give {name}={example}")
        require_gamma(self.gamma)
        check_objectives(self.objectives)
        if self.method not in METHODS:
            raise unknown_name("method", self.method, METHODS)
        if f".{self.model_format}" not in SUFFIXES:
            raise unknown_name("model_format", self.model_format, [s[1:] for s in SUFFIXES])
        require_at_least("seed", self.seed, 0)
        if self.epochs is not None:
            require_at_least("epochs", self.epochs, 1)
        require_at_least("batch_size", self.batch_size, 1)
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ConfigError(f"lr must be positive and finite, got {self.lr}")
        self.env.check()
        self.rollouts.check()
        if self.rollouts.rollouts:
            parse_sources(self.rollouts.rollouts)


@dataclass(frozen=True)
class PreprocessedFiles:
    """What a preprocessing left behind.

    Attributes:
        models: by objective, "unmodified" included.
        certificates: by objective.
        test_objectives: by objective, before and after on the test transitions, if there were any.
    """

    models: dict[str, Path]
    certificates: dict[str, Certificate]
    test_objectives: dict[str, tuple[float, float]]


def preprocess_model(
    config: PreprocessConfig,
    report: Callable[[Certificate], None] | None = None,
) -> PreprocessedFiles:
    """Preprocess a saved reward for each objective, certify the results, and only then keep them.

    Writes `{save_path}.unmodified.pt`, and for each objective `{save_path}.{objective}.pt`, its
    `.certificate.json`, and where it can be drawn its `.potential.pdf`.

    Args:
        config: see `PreprocessConfig`.
        report: told each certificate as soon as it is there.

    Raises:
        AprlError: bad input, or a certificate that fails; nothing is left behind then.
    """
    config.check()
    assert config.model_path is not None and config.save_path is not None
    model = load_reward_net(config.model_path)
    env = config.env.make()
    model.require_fit(env.observation_space, env.action_space, config.model_path)
    kind = config.potential or default_potential(config.env.env_id)
    potential = make_potential(
        kind, env.observation_space, config.potential_options, seed=config.seed
    )
    data = gather_data(env, config.env.make, config.rollouts, config.env.n_envs, config.seed)
    model.rewards(data.train)  # refuses rewards that are not finite before anything else
    prefix = Path(config.save_path)
    folder = require_writable_directory(prefix.parent)
    certificates: dict[str, Certificate] = {}
    test_objectives: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory(prefix=f".{prefix.name}.tmp-", dir=folder) as scratch:
        staged = Path(scratch) / prefix.name
        suffix = f".{config.model_format}"
        provenance = {"model_path": config.model_path, "seed": config.seed}
        save_reward_net(model, Path(f"{staged}.unmodified{suffix}"), provenance)
        for name in config.objectives:
            objective = get_objective(name)
            path = Path(f"{staged}.{name}{suffix}")
            certificate, net = _preprocess_one(config, model, data, objective, potential, path)
            certificate.require()
            certificates[name] = certificate
            if data.test is not None:
                pair = tuple(objective.value(n.rewards(data.test), data.test) for n in (model, net))
                test_objectives[name] = (pair[0], pair[1])
            record = {**certificate.to_json(), "test": test_objectives.get(name)}
            write_json(f"{staged}.{name}.certificate.json", record)
            save_potential_plot(net.potential, env, Path(f"{staged}.{name}.potential.pdf"))
            if report is not None:
                report(certificate)
        for file in sorted(Path(scratch).iterdir()):
            os.replace(file, folder / file.name)
    env.close()
    models = {name: Path(f"{prefix}.{name}{suffix}") for name in ("unmodified", *config.objectives)}
    return PreprocessedFiles(models, certificates, test_objectives)


def _preprocess_one(
    config: PreprocessConfig,
    model: RewardNet,
    data: Data,
    objective: Objective,
    potential: Potential,
    path: Path,
) -> tuple[Certificate, ShapedRewardNet]:
    """Preprocess for one objective, save, read back and certify what was read."""
    options = gradient_options(config, data.train, potential)
    display = ProgressDisplay(
        options.steps(data.train), enabled=config.progress, verb=objective.name
    )
    try:
        result = preprocess(
            model,
            data.train,
            objective,
            potential,
            config.gamma,
            config.method,
            options,
            lambda step, value: display.update(step, f"objective {value:.6f}"),
        )
    finally:
        display.close()
    provenance = {"model_path": config.model_path, "objective": objective.name}
    save_reward_net(result.reward, path, {**provenance, "method": result.method})
    reread = load_reward_net(path)
    assert isinstance(reread, ShapedRewardNet)
    certificate = certify(
        model,
        reread,
        data.train,
        objective,
        method=result.method,
        lower_bound=result.lower_bound,
        mdp=data.mdp,
    )
    return certificate, reread


def gradient_options(
    config: PreprocessConfig, transitions: Transitions, potential: Potential
) -> GradientOptions:
    """The config's settings of the gradient method, filled in by what suits the data."""
    suited = default_gradient_options(transitions, potential, config.batch_size)
    return GradientOptions(
        epochs=config.epochs or suited.epochs,
        batch_size=config.batch_size,
        lr=config.lr or suited.lr,
        seed=config.seed,
    )


preprocess_experiment = CommandExperiment(
    "preprocess",
    PreprocessConfig,
    PREPROCESS_NAMED,
    parts={"env": ENV_PART, "rollouts": ROLLOUTS_PART},
)


@preprocess_experiment.main
def _run(_config: dict[str, Any]) -> dict[str, Any]:
    """Preprocess as configured; `print_config` shows every option."""
    with user_errors():
        config = read_config(PreprocessConfig, as_plain(_config))
        console = output()
        files = preprocess_model(config, lambda c: console.print(c.table()))
        for name, (before, after) in files.test_objectives.items():
            console.print(f"{name} on test transitions: {before:.6f} -> {after:.6f}")
        for path in files.models.values():
            console.print(f"model: {path}", soft_wrap=True)
        return {name: c.objective_after for name, c in files.certificates.items()}


def main() -> None:
    """Command line."""
    command_line(preprocess_experiment, default_root=RUNS_DIR, argv=sys.argv)


if __name__ == "__main__":
    main()
