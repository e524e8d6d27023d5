"""Errors of reward preprocessing; each prints as one line at the command line."""

from aprl.errors import AprlError


class RewardError(AprlError):
    """A reward net or potential that cannot be read, or does not fit the environment."""


class TrajectoryError(AprlError):
    """Trajectories that are missing, empty, damaged, or do not fit."""


class CertificateError(AprlError):
    """A preprocessed reward that is not provably equivalent to its original."""
