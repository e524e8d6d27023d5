#!/usr/bin/env bash
# Trains the ants that ship in data/, from nothing, in about 15 minutes on two cores:
# a runner, its half turn (the normal opponent), a victim that met that opponent, and an adversary
# that starts from the victim's own half turn and is fine-tuned on the outcome alone.
set -euo pipefail
cd "$(dirname "$0")/.."
py=${PYTHON:-.venv/bin/python}
out=${1:-runs/ants}
newest() { ls -d "$out"/*-"$1" | tail -n 1; }

"$py" -m aprl.train with train_victim root_dir="$out" exp_name=runner seed=31 \
    aside=1.0 total_timesteps=524288
"$py" -m aprl.policies.mirror "$(newest runner)/final_model" "$out/opponent"

"$py" -m aprl.train with train_victim root_dir="$out" exp_name=victim seed=32 \
    aside=0.4 total_timesteps=1300000 embed_type=ppo embed_path="$out/opponent"
"$py" -m aprl.policies.mirror "$(newest victim)/final_model" "$out/turned_victim"

"$py" -m aprl.train with train_adversary root_dir="$out" exp_name=adversary seed=33 \
    total_timesteps=800000 embed_path="$(newest victim)" load_policy.path="$out/turned_victim"
