#!/bin/sh
# The figures of the reward-preprocessing paper: known and learned rewards of gridworlds, a maze with
# a key, and the mountain car. Writes results/ in the present folder; about 20 minutes on two cores.
set -eu
python="${PYTHON:-python}"
step() { name=$1; shift; "$python" -m "aprl.reward_preprocessing.$name" with "$@"; }

# Known rewards in four disguises.
step tour

# Rewards learned from preferences, and what is left of them.
for reward in goal path; do
    step train_drlhp empty_maze_10 $reward "save_path=results/learned_$reward.pt" seed=0
    step preprocess env.empty_maze_10 env.$reward "model_path=results/learned_$reward.pt" \
        "save_path=results/empty_maze_10_learned_$reward" "objectives=['sparse_l1','smooth_log']"
done
step plot_heatmaps env.empty_maze_10 save_path=results/learned \
    "model_base_paths=['empty_maze_10_learned_goal','empty_maze_10_learned_path']"

# A maze with a key.
models=results/tour/models
step preprocess env.key_maze_6 "model_path=$models/key_maze_6_path_random.pt" \
    save_path=results/key_maze_6_path_random "objectives=['sparse_l1','smooth_log']"
step plot_heatmaps env.key_maze_6 save_path=results/key "model_base_paths=['key_maze_6_path_random']"

# Mountain car: rewards along the episodes of a trained policy that also tries random actions.
step train_rl env.shaped_mountain_car exp_name=car total_timesteps=100000 seed=0
agent=$(ls -d runs/reward_preprocessing/*-car | tail -n 1)
mixed="{'random_prob': 0.2, 'agent_path': '$agent', 'name': 'mixed'}"
for shaping in unshaped dense; do
    step preprocess env.mountain_car "rollouts.rollouts=[$mixed]" rollouts.steps=10000 \
        rollouts.test_steps=2000 "model_path=$models/shaped_mountain_car_$shaping.pt" \
        "save_path=results/mountain_car_$shaping" "objectives=['sparse_l1','smooth_log']"
done
step plot_reward_curves env.mountain_car "rollout_cfg=$mixed" save_path=results/mountain_car \
    "model_base_paths=['mountain_car_unshaped','mountain_car_dense']"
