"""What plays: policies without a network, networks, their files, and the published zoo."""

from aprl.policies.base import Policy, SeededPolicy
from aprl.policies.loader import POLICY_TYPES, load_policy, resolve_policy_directory
from aprl.policies.network import ActorCriticMlp, MlpPolicy, NetworkPolicy
from aprl.policies.recurrent import ActorCriticLstm, LstmPolicy
from aprl.policies.simple import ConstantPolicy, RandomPolicy, ZeroPolicy
from aprl.policies.store import fingerprint, load_saved, read_header, save_policy
from aprl.policies.zoo import ZOO_GAMES, decode, zoo_directory

__all__ = [
    "POLICY_TYPES",
    "ZOO_GAMES",
    "ActorCriticLstm",
    "ActorCriticMlp",
    "ConstantPolicy",
    "LstmPolicy",
    "MlpPolicy",
    "NetworkPolicy",
    "Policy",
    "RandomPolicy",
    "SeededPolicy",
    "ZeroPolicy",
    "decode",
    "fingerprint",
    "load_policy",
    "load_saved",
    "read_header",
    "resolve_policy_directory",
    "save_policy",
    "zoo_directory",
]
