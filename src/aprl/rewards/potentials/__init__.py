"""Potentials, and the names by which configs and files know them."""

from aprl.rewards.potentials.base import LinearInParameters, Potential
from aprl.rewards.potentials.critic import CriticPotential
from aprl.rewards.potentials.linear import LinearPotential, TabularPotential
from aprl.rewards.potentials.mlp import MlpPotential
from aprl.rewards.potentials.sinusoid import SinusoidPotential

__all__ = [
    "POTENTIALS",
    "CriticPotential",
    "LinearInParameters",
    "LinearPotential",
    "MlpPotential",
    "Potential",
    "SinusoidPotential",
    "TabularPotential",
]

POTENTIALS: dict[str, type[Potential]] = {
    cls.kind: cls
    for cls in (
        TabularPotential,
        LinearPotential,
        MlpPotential,
        CriticPotential,
        SinusoidPotential,
    )
}
