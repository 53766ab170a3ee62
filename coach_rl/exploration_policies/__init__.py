"""Randomness in action choice, vectorised over rows and silent in TEST.

May import core only. Start with `row_noise`: each row of a stack has a random stream of its own, so what
happens in a row does not depend on how many rows there are.
"""

from coach_rl.exploration_policies.row_noise import RowNoise

__all__ = ["RowNoise"]
