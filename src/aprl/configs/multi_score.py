"""Named configs of `aprl.multi.score`: experiments, and modifiers that go with any of them."""

from typing import Any

_YSNP = ["multicomp/YouShallNotPassHumans-v1"]
_SWEEPS = "data/multi_train"
_HARDENED = [f"json:{_SWEEPS}/finetune_defense_{kind}_mlp" for kind in ("single", "dual")]
_RETRAINED = [
    f"json:{_SWEEPS}/adv_from_scratch_against_finetune_defense_{kind}_mlp"
    for kind in ("single", "dual")
]

NAMED_CONFIGS: dict[str, dict[str, Any]] = {
    # Experiments.
    "normal": {
        "exp_name": "normal",
        "victims": ["zoo"],
        "opponents": ["zoo", "fixed", "adversary"],
    },
    "defenses": {
        "exp_name": "defenses",
        "envs": _YSNP,
        "victims": ["zoo", *_HARDENED],
        "opponents": ["zoo", "fixed", f"json:{_SWEEPS}/paper", *_RETRAINED],
    },
    "debug_two_agents": {
        "exp_name": "debug_two_agents",
        "envs": ["multicomp/KickAndDefend-v1"],
        "victims": ["zoo:1"],
        "opponents": ["zoo:1", "fixed"],
        "episodes": 2,
    },
    "debug_one_each_type": {
        "exp_name": "debug_one_each_type",
        "victims": ["zoo:1"],
        "opponents": ["zoo:1", "fixed"],
        "episodes": 2,
    },
    # Modifiers.
    "high_accuracy": {"episodes": 1000},
    "medium_accuracy": {"episodes": 100},
    "mask_observations_of_victim": {"mask": "victim"},
    "mask_observations_of_adversary": {"mask": "adversary"},
    "mask_observations_with_zeros": {"masking_type": "zeros"},
    "mask_observations_with_additive_noise": {
        "noise": "observations",
        "noise_distribution": "lognormal",
        "noise_params": [0.5, 1.5],
    },
    "mask_observations_with_smaller_additive_noise": {
        "noise": "observations",
        "noise_distribution": "exponential",
        "noise_params": [1.0],
    },
    "noise_victim_actions": {"noise": "victim_actions"},
    "noise_adversary_actions": {"noise": "adversary_actions"},
    # What the victims' networks compute in 20,000 steps of each match-up.
    "save_activations": {
        "activations": "data/trajectories",
        "score": {
            "activation_keys": ["ff_policy", "ff_value"],
            "episodes": None,
            "timesteps": 20_000,
        },
    },
    # A minute of each match-up at 60 frames per second, annotated.
    "video": {
        "score": {
            "videos": True,
            "episodes": None,
            "timesteps": 3600,
            "video_params": {"width": 1920, "height": 1080},
        }
    },
}
