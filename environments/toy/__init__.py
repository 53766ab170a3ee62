"""Toy worlds, learnt in seconds: bandits, a chain, a point mass with and without goal.

Everything is numpy over all rows at once: a world is a few pure functions over rows (`World` in
`coach_rl.environments.world`), and `WorldEnvironment` does the rest. Start with `point_mass`.
"""

from coach_rl.environments.toy.chain import Chain, ChainParameters
from coach_rl.environments.toy.goal_point_mass import GoalPointMass, GoalPointMassParameters
from coach_rl.environments.toy.one_step import OneStepParameters
from coach_rl.environments.toy.point_mass import PointMass, PointMassParameters

__all__ = [
    "Chain",
    "ChainParameters",
    "GoalPointMass",
    "GoalPointMassParameters",
    "OneStepParameters",
    "PointMass",
    "PointMassParameters",
]
