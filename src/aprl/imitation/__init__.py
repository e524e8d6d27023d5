"""Imitation: policies learned from demonstrations: GAIL, AIRL, behavioural cloning."""
