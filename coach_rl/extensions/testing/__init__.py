"""The suites that prove a room's promises; for our tests and for those of your own environment.

May import core, numpy and Gymnasium; needs no test framework. Start with `environment_contract`:
`check_environment(build)` runs every check, `EnvironmentContract` makes each a test of its own,
`examine(build)` yields the finding of each (`coach check` on the command line).
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.testing.agent_contract import (
        AGENT_CHECKS,
        AgentContract,
        check_agent,
        examine_agent,
        examine_agents,
    )
    from coach_rl.extensions.testing.agent_trial import AgentTrial
    from coach_rl.extensions.testing.environment_contract import (
        ENVIRONMENT_CHECKS,
        EnvironmentContract,
        Finding,
        check_environment,
        examine,
    )
    from coach_rl.extensions.testing.goal_contract import GOAL_CHECKS, check_goals
    from coach_rl.extensions.testing.states import assert_same_state
    from coach_rl.extensions.testing.trial import ContractViolation, Trial
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AGENT_CHECKS", "ENVIRONMENT_CHECKS", "GOAL_CHECKS", "AgentContract", "AgentTrial",
    "ContractViolation", "EnvironmentContract", "Finding", "Trial", "assert_same_state",
    "check_agent", "check_environment", "check_goals", "examine", "examine_agent", "examine_agents",
]  # fmt: skip
