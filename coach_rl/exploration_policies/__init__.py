"""Randomness in action choice, in numpy, vectorised over rows and silent in TEST.

May import core only. Start with `row_noise`: each row of a stack has a random stream of its own, so
what happens in a row does not depend on how many rows there are; `sampling` turns such numbers into
actions of a stochastic policy.
"""

from coach_rl.exploration_policies.row_noise import RowNoise
from coach_rl.exploration_policies.sampling import CategoricalSampler, GaussianSampler, Sampler

__all__ = ["CategoricalSampler", "GaussianSampler", "RowNoise", "Sampler"]
