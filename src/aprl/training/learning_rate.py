"""The learning rate of a run: its value at the start, and how it goes on from there."""

from stable_baselines3.common.type_aliases import Schedule

from aprl.errors import ConfigError, unknown_name

LEARNING_RATE_SCHEDULES = ("constant", "linear")


def check_learning_rate(rate: float, schedule: str) -> None:
    """Refuse what `learning_rate` cannot make.

    Raises:
        ConfigError: a rate outside [0, 1), or an unknown schedule.
    """
    if not isinstance(rate, int | float) or not 0 <= rate < 1:
        raise ConfigError(f"learning_rate must be in [0, 1), got {rate!r}")
    if schedule not in LEARNING_RATE_SCHEDULES:
        raise unknown_name("learning_rate_schedule", schedule, LEARNING_RATE_SCHEDULES)


def learning_rate(rate: float, schedule: str) -> float | Schedule:
    """What a learner takes: a constant, or a function of the progress that remains (1 to 0).

    Args:
        rate: at the start.
        schedule: "constant", or "linear": it falls to 0 at the end of the whole run.
    """
    return rate if schedule == "constant" else lambda remaining: rate * remaining
