"""Agents that learn from data alone: TD3+BC, ReBRAC, IQL, conservative Q-learning.

May import what agents may, and `imitation`, whose policies IQL clones. A file each, with the
paper's equations. `extensions/data` has the graph manager that trains them.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.offline.discrete_cql import (
        CQLAlgorithmParameters,
        DiscreteCQLAgentParameters,
    )
    from coach_rl.extensions.offline.iql import IQLAgentParameters, IQLAlgorithmParameters
    from coach_rl.extensions.offline.rebrac import (
        NextActionsParameters,
        ReBRACAgentParameters,
        ReBRACAlgorithmParameters,
    )
    from coach_rl.extensions.offline.td3_bc import TD3BCAgentParameters, TD3BCAlgorithmParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CQLAlgorithmParameters",
    "DiscreteCQLAgentParameters",
    "IQLAgentParameters",
    "IQLAlgorithmParameters",
    "NextActionsParameters",
    "ReBRACAgentParameters",
    "ReBRACAlgorithmParameters",
    "TD3BCAgentParameters",
    "TD3BCAlgorithmParameters",
]
