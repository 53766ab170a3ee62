"""Agents that learn to act as others have.

May import what agents may, and `sessions`, for teachers. Start with `behaviour_cloning`, then
`dagger`; `policy_network` is a policy alone, for every space of actions that PPO has.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.imitation.behaviour_cloning import BCAgentParameters
    from coach_rl.extensions.imitation.dagger import DAggerAgentParameters
    from coach_rl.extensions.imitation.policy_network import PolicyParameters
    from coach_rl.extensions.imitation.teacher import TeacherParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BCAgentParameters", "DAggerAgentParameters", "PolicyParameters", "TeacherParameters"]
