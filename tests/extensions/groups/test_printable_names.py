"""Names of shared agents are printable."""

import coach_rl as rl
from coach_rl.core.errors import ParameterError
from tests.refusals import check_refused


def test_name_of_a_shared_agent_that_is_not_printable_is_refused() -> None:
    member = rl.GroupMember(agent=rl.PPOAgentParameters(name="a"), shares="\x1b")
    message = "GroupMember.shares must be printable text"
    check_refused(lambda: rl.AgentGroupParameters(members=(member,)), ParameterError, message)
