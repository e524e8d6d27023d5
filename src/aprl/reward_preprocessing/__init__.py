"""Reward preprocessing: rewrite a learned reward so that a person can read it.

Potential shaping (Ng, Harada and Russell, ICML 1999) changes a reward without changing optimal
policies; of all equivalent rewards, the one that is sparsest or smoothest is the easiest to read
(Jenner and Gleave, arXiv:2203.13553).
"""
