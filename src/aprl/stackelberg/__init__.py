"""Stackelberg model-based RL: a leader (model or policy) against a best-responding follower."""
