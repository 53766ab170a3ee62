"""Randomness in action choice, in numpy, vectorised over rows and silent in TEST.

May import core only. Each row of a stack has a random stream of its own (`core.row_noise`), so what
happens in a row does not depend on how many rows there are; `sampling` turns such numbers into
actions of a stochastic policy. Off-policy agents explore by an `exploration_policy`: `Greedy` and
`EpsilonGreedy` for Discrete spaces; `GaussianNoise` and `EpsilonGreedyNoise` for boxes; or by a
`parameter_exploration`, which perturbs the policy.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.exploration_policies.box_noise import EpsilonGreedyNoise, GaussianNoise
    from coach_rl.exploration_policies.discrete_policies import EpsilonGreedy
    from coach_rl.exploration_policies.exploration_policy import (
        AnyExplorationPolicy,
        ExplorationPolicy,
        ExplorationPolicyParameters,
        Greedy,
    )
    from coach_rl.exploration_policies.parameter_exploration import (
        AnyParameterExploration,
        ParameterExploration,
        ParameterExplorationParameters,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AnyExplorationPolicy", "AnyParameterExploration", "EpsilonGreedy", "EpsilonGreedyNoise",
    "ExplorationPolicy", "ExplorationPolicyParameters", "GaussianNoise", "Greedy",
    "ParameterExploration", "ParameterExplorationParameters",
]  # fmt: skip
