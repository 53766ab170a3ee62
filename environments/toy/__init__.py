"""Toy worlds: bandits, a chain, bits, gates, platforms, masses, mazes, cables.

Everything is numpy over all rows at once: a world is a few pure functions over rows (`World` in
`coach_rl.environments.world`), and `WorldEnvironment` adds seeds,
time limits and saved states. Start with `point_mass`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.toy.cables import Cables, CablesParameters
    from coach_rl.environments.toy.diagnostics import (
        Chain,
        ChainParameters,
        OneStepParameters,
        SteadyPayParameters,
    )
    from coach_rl.environments.toy.goals import (
        BitFlip,
        BitFlipParameters,
        Gates,
        GatesParameters,
        GoalPointMass,
        GoalPointMassParameters,
    )
    from coach_rl.environments.toy.platform import Platform, PlatformParameters
    from coach_rl.environments.toy.point_mass import PointMass, PointMassParameters
    from coach_rl.environments.toy.t_maze import TMaze, TMazeParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BitFlip", "BitFlipParameters", "Cables", "CablesParameters", "Chain", "ChainParameters",
    "Gates", "GatesParameters", "GoalPointMass", "GoalPointMassParameters", "OneStepParameters",
    "Platform", "PlatformParameters", "PointMass", "PointMassParameters", "SteadyPayParameters",
    "TMaze", "TMazeParameters",
]  # fmt: skip
