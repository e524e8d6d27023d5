"""Every method by name, with the options that it is run with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aprl.configs.checks import check_entries, with_types
from aprl.errors import ConfigError, unknown_name
from aprl.stackelberg.answers import (
    AnswerSearch,
    AnswerSearchConfig,
    SampledAnswers,
    SampledAnswersConfig,
)
from aprl.stackelberg.baselines.ppo import ModelFreePPO, PPOConfig
from aprl.stackelberg.baselines.q_learning import DynaQ, DynaQConfig
from aprl.stackelberg.baselines.regret import PSRL, UCBVI, RegretConfig
from aprl.stackelberg.mal import Mal, MalConfig
from aprl.stackelberg.mal_tabular import TabularMal, TabularMalConfig
from aprl.stackelberg.mdp import Task
from aprl.stackelberg.oracle import Oracle
from aprl.stackelberg.pal import Pal, PalConfig
from aprl.stackelberg.runner import Method
from aprl.stackelberg.stopping import StoppingRule


@dataclass(frozen=True)
class MethodSpec:
    """A method that can be named.

    Attributes:
        kind: the class that learns.
        options: fields of its config that differ from the class's defaults.
        claim: which guarantee holds, in a few words; docs/stackelberg.md has the long answer.
        compared: whether `aprl.stackelberg.compare` runs it unless told otherwise.
    """

    kind: type
    options: Mapping[str, Any] = field(default_factory=dict)
    claim: str = "none"
    compared: bool = True


CONFIGS: dict[type, type] = {
    TabularMal: TabularMalConfig,
    Mal: MalConfig,
    Pal: PalConfig,
    AnswerSearch: AnswerSearchConfig,
    SampledAnswers: SampledAnswersConfig,
    DynaQ: DynaQConfig,
    ModelFreePPO: PPOConfig,
    UCBVI: RegretConfig,
    PSRL: RegretConfig,
}
FAMILIES: dict[type, str] = {  # for panels of figures
    TabularMal: "tabular MAL",
    **dict.fromkeys((Mal, Pal, AnswerSearch, SampledAnswers), "MAL, PAL and answers with PPO"),
    DynaQ: "Q-learning and Dyna-Q",
    **dict.fromkeys((ModelFreePPO, UCBVI, PSRL), "UCBVI, PSRL and PPO"),
}
_USES_ORACLE = (TabularMal, Mal, AnswerSearch)

_SELF = "self-confirming only"
_EXPLORES = "explores by optimism; no constants proven"
_K4: dict[str, Any] = {"initial_models": 4, "replan_within": False}
# Leaders of short runs: SB3's default of 2048 steps per update is more than many budgets.
_SHORT_RUN = {"gamma": 1.0, "n_steps": 256, "learning_rate": 6e-3, "n_epochs": 4}

METHODS: dict[str, MethodSpec] = {
    "mal_tabular": MethodSpec(TabularMal, {}, _EXPLORES),
    "mal_fixed": MethodSpec(TabularMal, {"unseen": "fixed", **_K4}, _SELF),
    "mal_fixed_noise": MethodSpec(
        TabularMal, {"unseen": "fixed", "noise": 0.3, **_K4}, "consistent where noise reaches"
    ),
    "mal_redraw": MethodSpec(TabularMal, {"unseen": "redraw", **_K4}, _SELF),
    "mal_optimistic": MethodSpec(
        TabularMal, {"unseen": "optimistic", "replan_within": False}, "R-max with m = 1: no PAC"
    ),
    "mal_bonus": MethodSpec(TabularMal, {"unseen": "bonus"}, _EXPLORES),
    "mal_posterior": MethodSpec(TabularMal, {"unseen": "posterior"}, "Bayesian regret of PSRL"),
    "mal": MethodSpec(Mal, {"ppo": _SHORT_RUN}, "Stackelberg if PPO converges; may cheat"),
    "mal_reward": MethodSpec(Mal, {"reward_weight": 0.5, "ppo": _SHORT_RUN}, "of the mixed goal"),
    "mal_noise": MethodSpec(Mal, {"noise": 0.5, "ppo": _SHORT_RUN}, "of the noisy game"),
    "mal_published": MethodSpec(Mal, {}, "Stackelberg if PPO converges; may cheat", False),
    "pal": MethodSpec(
        Pal,
        {
            "episodes": 5,
            "epochs": 2,
            "policy_steps": 4096,
            "ppo": {"n_steps": 128, "batch_size": 256, "n_epochs": 5, "learning_rate": 6e-3},
        },
        "value bound in the model's error",
    ),
    "pal_published": MethodSpec(Pal, {}, "value bound in the model's error", False),
    "answer_search": MethodSpec(AnswerSearch),
    "sampled_answers": MethodSpec(SampledAnswers),
    "q_learning": MethodSpec(DynaQ, {}, "asymptotic"),
    "q_learning_tuned": MethodSpec(DynaQ, {"epsilon": 0.3, "initial_value": 10.0}, "asymptotic"),
    "dyna_q": MethodSpec(DynaQ, {"planning_steps": 5}, "asymptotic"),
    "dyna_q_tuned": MethodSpec(
        DynaQ, {"planning_steps": 10, "alpha": 0.2, "initial_value": 10.0}, "asymptotic"
    ),
    "dyna_q_plus": MethodSpec(DynaQ, {"planning_steps": 5, "kappa": 0.001}),
    "dyna_q_plus_tuned": MethodSpec(DynaQ, {"planning_steps": 10, "alpha": 0.5, "kappa": 0.01}),
    "ppo": MethodSpec(ModelFreePPO),
    "ppo_tuned": MethodSpec(
        ModelFreePPO, {"ppo": {"n_steps": 20, "n_epochs": 4, "learning_rate": 3e-3}}
    ),
    "ucbvi": MethodSpec(UCBVI, {}, "regret and PAC, proven"),
    "ucbvi_tuned": MethodSpec(
        UCBVI, {"bonus_scale": 0.001, "deployed": "mean"}, "none at this scale"
    ),
    "psrl": MethodSpec(PSRL, {}, "Bayesian regret, proven"),
    "psrl_tuned": MethodSpec(PSRL, {"prior": 0.2, "deployed": "mean"}, "Bayesian regret"),
}
DEFAULT_METHOD = "mal_tabular"


def check_method_name(name: str) -> None:
    """Check that `make_method` knows a name.

    Raises:
        ConfigError: it does not; the message lists near matches.
    """
    if name not in METHODS:
        raise unknown_name("method", str(name), METHODS)


def make_method(
    name: str,
    options: Mapping[str, Any] | None = None,
    make_oracle: Callable[[Task], Oracle] | None = None,
) -> Method:
    """Build a method by name.

    Args:
        name: one of `METHODS`.
        options: fields of its config to set, over those of the registry; `stop` of tabular MAL may
            be a dict of `StoppingRule`'s fields.
        make_oracle: a learned follower for a task; None: the planner.

    Raises:
        ConfigError: an unknown name or option (near matches listed), a value out of range, or an
            oracle for a method that has no follower to replace.
    """
    check_method_name(name)
    spec = METHODS[name]
    values = {**spec.options, **(options or {})}
    config_class = CONFIGS[spec.kind]
    check_entries(config_class, values)
    if isinstance(values.get("stop"), Mapping):
        check_entries(StoppingRule, dict(values["stop"]))
        values["stop"] = with_types(StoppingRule(**values["stop"]))
    config = with_types(config_class(**values))
    if make_oracle is None:
        return spec.kind(config)
    if spec.kind not in _USES_ORACLE:
        fitting = [name for name, other in METHODS.items() if other.kind in _USES_ORACLE]
        raise ConfigError(f"{name} has no follower to learn; those are {', '.join(fitting)}")
    return spec.kind(config, make_oracle)
