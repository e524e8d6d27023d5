"""Ways to attack a fixed victim, behind one interface: `attack=` and `attack_params=`."""

from typing import Any

from aprl.configs.checks import check_entries, with_types
from aprl.errors import unknown_name
from aprl.training.attacks.base import Attack, AttackRewardVecEnv, AttackSetting
from aprl.training.attacks.intrinsic import Intrinsic
from aprl.training.attacks.lookback import Lookback
from aprl.training.attacks.simple import Baseline, NoiseBall, ValueDifference

ATTACKS: dict[str, type[Attack]] = {
    attack.name: attack for attack in (Baseline, ValueDifference, Intrinsic, NoiseBall, Lookback)
}

__all__ = ["ATTACKS", "Attack", "AttackRewardVecEnv", "AttackSetting", "make_attack"]


def make_attack(name: str, params: dict[str, Any]) -> Attack:
    """A checked attack.

    Args:
        name: one of `ATTACKS`.
        params: its hyperparameters; the rest keep their defaults.

    Raises:
        ConfigError: unknown name, or hyperparameters that it has not or cannot use.
    """
    if name not in ATTACKS:
        raise unknown_name("attack", name, ATTACKS)
    check_entries(ATTACKS[name], params)
    attack = with_types(ATTACKS[name](**params))
    attack.check()
    return attack
