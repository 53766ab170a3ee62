"""Exploration over longer times, and truncated noise.

May import exploration_policies and core. `epsilon_z_greedy` repeats an action, noise of
`ornstein_uhlenbeck` drifts, `parameter_noise` perturbs a policy for a whole episode,
`truncated_normal` draws noise that stays in the Box.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.exploration.epsilon_z_greedy import EpsilonZGreedy
    from coach_rl.extensions.exploration.ornstein_uhlenbeck import OrnsteinUhlenbeckNoise
    from coach_rl.extensions.exploration.parameter_noise import ParameterNoise
    from coach_rl.extensions.exploration.truncated_normal import TruncatedNormalNoise
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["EpsilonZGreedy", "OrnsteinUhlenbeckNoise", "ParameterNoise", "TruncatedNormalNoise"]
