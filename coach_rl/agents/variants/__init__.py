"""Variants of algorithms for further kinds of action space, a file each, which registers its own.

No other file of the rooms names one: a file that is deleted takes its variant away. A module of
yours registers a learner in the same way, and your preset imports it:

    @dqn_learner.register(spaces.MultiBinary)
    def switches_learner(
        space: spaces.MultiBinary, params: DQNAgentParameters, agent: OffPolicyAgent
    ) -> Learner:
        return SwitchesLearner(params, agent)

May import what `agents` may. Start with `by_space`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.variants.by_space import made_for_space
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["made_for_space"]
