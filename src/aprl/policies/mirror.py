"""Let an ant that plays one side of Run to Goal play the other.

The two sides differ by a half turn of the world about the vertical axis. Turned with it, a player
sees its own joints unchanged, and x, y of everything else with opposite signs. That is a signed
permutation of the observation, which is folded into the weights: the result is an ordinary policy.

`python -m aprl.policies.mirror SOURCE TARGET` does it to a saved policy.
"""

from collections.abc import Sequence

import numpy as np
import torch

from aprl.cli import ArgumentParser, run_cli
from aprl.errors import PolicyError
from aprl.policies.network import ActorCriticMlp, MlpPolicy
from aprl.policies.store import load_saved, read_header, save_policy

_OBS_DIM = 122  # own qpos 0:15, qvel 15:29, contact forces 29:107, other's qpos 107:122
_QUATERNION = ((3, 1.0), (2, 1.0), (1, -1.0), (0, -1.0))  # (w, x, y, z) -> (z, y, -x, -w)


def half_turn() -> tuple[np.ndarray, np.ndarray]:
    """Where each entry of the turned observation comes from.

    Returns:
        `source` (122,) int and `sign` (122,) float: turned[j] = sign[j] * observation[source[j]].
    """
    source, sign = np.arange(_OBS_DIM), np.ones(_OBS_DIM)
    # A quaternion and its negative are the same orientation. Each player starts as (1, 0, 0, 0) on
    # side 0 and as (0, 0, 0, 1) on side 1, which decides the sign for oneself and for the other.
    for start, hemisphere in ((0, 1.0), (107, -1.0)):
        sign[[start, start + 1]] = -1.0
        for offset, (component, factor) in enumerate(_QUATERNION):
            source[start + 3 + offset] = start + 3 + component
            sign[start + 3 + offset] = hemisphere * factor
    sign[[15, 16]] = -1.0  # linear velocity is in the world's frame, angular in the body's
    for vector in range(29, 107, 3):  # torque and force of each body, in the world's frame
        sign[[vector, vector + 1]] = -1.0
    return source, sign


@torch.no_grad()
def other_side(policy: MlpPolicy) -> MlpPolicy:
    """The same ant for the opposite side of Run to Goal.

    Raises:
        PolicyError: not a policy of this game.
    """
    old = policy.network
    if old.obs_dim != _OBS_DIM:
        raise PolicyError(f"an ant's observation has {_OBS_DIM} entries, this one {old.obs_dim}")
    source, sign = half_turn()
    new = ActorCriticMlp(
        old.obs_dim,
        old.action_dim,
        policy_layers=old.policy_layers,
        value_layers=old.value_layers,
        clip=old.clip,
    )
    new.load_state_dict(old.state_dict())
    signs = torch.as_tensor(sign, dtype=torch.float32)
    new.obs_mean[source] = signs * old.obs_mean
    new.obs_std[source] = old.obs_std
    for mine, theirs in (
        (new.policy_tower[0], old.policy_tower[0]),
        (new.value_tower[0], old.value_tower[0]),
    ):
        assert isinstance(mine.weight, torch.Tensor) and isinstance(theirs.weight, torch.Tensor)
        mine.weight[:, source] = signs * theirs.weight
    return MlpPolicy(new, policy.observation_space, policy.action_space)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the half turn of a saved ant policy."""
    parser = ArgumentParser(prog="python -m aprl.policies.mirror", description=main.__doc__)
    parser.add_argument("source", help="directory of an ant's policy")
    parser.add_argument("target", help="directory to write")
    args = parser.parse_args(argv)
    policy = load_saved(args.source)
    if not isinstance(policy, MlpPolicy):
        raise PolicyError(f"{args.source} is no MLP policy")
    provenance = read_header(args.source)["provenance"]
    index = provenance.get("agent_index")
    turned = {
        **provenance,
        "agent_index": None if index is None else 1 - index,
        "half_turn_of": provenance.get("run"),
    }
    save_policy(other_side(policy), args.target, turned)
    print(f"wrote {args.target}")
    return 0


if __name__ == "__main__":
    run_cli(main)
