"""Toy worlds, learnt in seconds: bandits, a chain, bits, steady pay, a point mass.

Everything is numpy over all rows at once: a world is a few pure functions over rows (`World` in
`coach_rl.environments.world`), and `WorldEnvironment` does the rest. Start with `point_mass`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.toy.bit_flip import BitFlip, BitFlipParameters
    from coach_rl.environments.toy.chain import Chain, ChainParameters
    from coach_rl.environments.toy.gates import Gates, GatesParameters
    from coach_rl.environments.toy.goal_point_mass import GoalPointMass, GoalPointMassParameters
    from coach_rl.environments.toy.one_step import OneStepParameters
    from coach_rl.environments.toy.point_mass import PointMass, PointMassParameters
    from coach_rl.environments.toy.steady_pay import SteadyPay, SteadyPayParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BitFlip", "BitFlipParameters", "Chain", "ChainParameters", "Gates", "GatesParameters",
    "GoalPointMass", "GoalPointMassParameters", "OneStepParameters", "PointMass",
    "PointMassParameters", "SteadyPay", "SteadyPayParameters",
]  # fmt: skip
