"""Agents that choose: SAC in Discrete and MultiDiscrete spaces, DQN in MultiDiscrete ones.

Variants of both agents, found by `extension.toml`, and exploration by softmax. May import agents,
architectures, exploration_policies, memories, functional and core. Start with `branching_dqn`, then
`discrete_sac` and `softmax`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.choices.branching_dqn import BranchingLearner
    from coach_rl.extensions.choices.discrete_sac import DiscreteSACLearner
    from coach_rl.extensions.choices.softmax import Boltzmann, Categorical
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Boltzmann", "BranchingLearner", "Categorical", "DiscreteSACLearner"]
