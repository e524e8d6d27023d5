"""The cheating example, exactly: `python -m aprl.stackelberg.cheating`.

The leader of MAL is judged where its follower goes, and its answers decide where that is. It can
tell the truth there and lie about the rest, so that the follower never goes anywhere else.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from aprl.cli import ArgumentParser, run_cli
from aprl.stackelberg.losses import expected_kl, expected_l2
from aprl.stackelberg.mdp import FiniteMDP
from aprl.stackelberg.model import with_final_states
from aprl.stackelberg.planning import (
    best_response,
    policy_return,
    policy_values,
    stationary_policies,
    visit_probabilities,
)
from aprl.stackelberg.worlds import make_world


@dataclass(frozen=True, eq=False)
class Cheat:
    """A model that is true wherever one policy goes, and makes that policy the best response.

    Attributes:
        policy: `(S,)` actions that the leader wants played.
        model: the leader's answers.
        l2: exact mean squared distance of its predictions to one-hot next states, per step.
        kl: exact KL divergence from the world under the follower's occupancy.
        true_return: of the policy in the world.
        works: whether the policy is a best response to the model.
    """

    policy: np.ndarray
    model: FiniteMDP
    l2: float
    kl: float
    true_return: float
    works: bool


def lying_model(world: FiniteMDP, policy: np.ndarray) -> FiniteMDP:
    """True for all pairs that the policy plays; the others lead where it pays least to be led.

    That is the next state with the least advantage over the policy, at the step at which the
    advantage is greatest, so that the follower is never tempted.

    Args:
        world: dense.
        policy: `(S,)` actions.
    """
    task = world.task
    visited = visit_probabilities(world, policy).sum(axis=0).ravel() > 0
    values = policy_values(world, policy)
    here = np.repeat(values[:-1], task.n_actions, axis=1)
    advantages = task.rewards + values[1:, None, :] - here[:, :, None]
    worst = advantages.max(axis=0).argmin(axis=1)
    rows = np.where(visited[:, None], world.transitions, np.eye(task.n_states)[worst])
    return FiniteMDP(task, with_final_states(task, rows))


def cheat(world: FiniteMDP, policy: np.ndarray) -> Cheat:
    """Everything about the lie that makes a follower play `policy`, `(S,)` actions."""
    model = lying_model(world, policy)
    start = world.task.start
    promised = policy_values(model, policy)[0, start]
    return Cheat(
        policy=policy,
        model=model,
        l2=expected_l2(world, model, policy),
        kl=expected_kl(world, model, policy),
        true_return=policy_return(world, policy),
        works=bool(promised >= best_response(model).values[0, start] - 1e-9),
    )


def all_cheats(world: FiniteMDP) -> list[Cheat]:
    """One for each deterministic stationary policy of a small world.

    Raises:
        ConfigError: too many policies.
    """
    return [cheat(world, policy) for policy in stationary_policies(world.task)]


def cheating_table(world: FiniteMDP) -> Table:
    """Losses and returns of `all_cheats`."""
    table = Table(title=f"{world.name}: a truthful path, and lies beside it")
    for column in ("follower plays", "best response", "L2 loss", "KL loss", "true return"):
        table.add_column(column, justify="right")
    for entry in all_cheats(world):
        actions = [
            f"{state}:{action}"
            for state, action in enumerate(entry.policy)
            if not world.task.final[state]
        ]
        table.add_row(
            " ".join(actions),
            "yes" if entry.works else "no",
            f"{entry.l2:.4f}",
            f"{entry.kl:.4f}",
            f"{entry.true_return:.4f}",
        )
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; see `--help`."""
    parser = ArgumentParser(
        prog="python -m aprl.stackelberg.cheating",
        description="Show what a leader of MAL loses by lying where nobody looks.",
    )
    parser.add_argument("world", nargs="?", default="simple_mdp_2", help="default: %(default)s")
    world = make_world(parser.parse_args(argv).world)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(cheating_table(world))
    return 0


if __name__ == "__main__":
    run_cli(main)
