"""Errors of reward preprocessing; each prints as one line at the command line."""

from aprl.errors import AprlError


class TrajectoryError(AprlError):
    """Trajectories that are missing, empty, damaged, or do not fit."""


class CertificateError(AprlError):
    """A preprocessed reward that is not provably equivalent to its original."""
