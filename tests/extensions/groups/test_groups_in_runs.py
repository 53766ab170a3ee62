"""Runs of groups that are refused or warned of."""

from dataclasses import replace

import coach_rl as rl
from tests.graph_managers.small_runs import parameters
from tests.graph_managers.test_errors import FORGOTTEN
from tests.graph_managers.test_evaluator import manager_of
from tests.graph_managers.test_graph import check_idle_run_warns
from tests.graph_managers.test_policies import ForgottenParameters
from tests.graph_managers.test_policies import experiment as with_state
from tests.refusals import check_refused


def policies_of_group():
    agent = with_state(ForgottenParameters).agent
    members = tuple(
        rl.GroupMember(agent=replace(agent, name=name), actions=element)
        for name, element in (("one", "0"), ("two", "1"))
    )
    group = rl.AgentGroupParameters(members=members)
    manager_of(replace(parameters(), agent=group)).evaluations.policies()


def test_policies_of_a_group_with_a_member_that_forgets_are_refused():
    check_refused(
        policies_of_group, rl.ConfigurationError, f"agent of 'one': ForgottenAgent {FORGOTTEN}"
    )


def test_run_of_a_group_that_cannot_learn_warns_at_the_start():
    check_idle_run_warns(
        rl.AgentGroupParameters(members=(rl.GroupMember(agent=rl.PPOAgentParameters(name="one")),))
    )
