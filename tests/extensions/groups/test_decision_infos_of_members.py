"""Infos of decisions of several steps, of members in turn and in graphs of levels."""

from dataclasses import replace

import pytest

import coach_rl as rl
from tests.levels.test_decision_infos import (
    OWN,
    agent,
    check_infos_of_long_decisions,
    check_resumes_with_infos,
    check_warns_once,
    low,
    minus_cost,
    ppo,
    top,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")


def turns(own):
    members = (rl.GroupMember(agent=replace(own, name="a")), rl.GroupMember(agent=agent("b")))
    return rl.AgentGroupParameters(members=members, arbiter=rl.Turns(order=("a", "b", "b")))


SELECTING = rl.LevelGraph(below={"top": ("left", "right")})
STACKS = {
    "graph": {
        "levels": top(ppo(**OWN), low("left"), low("right", 3)),
        "arrangement": SELECTING,
    },
    "group in turn": {"levels": top(turns(agent(**OWN)))},
    "group in turn above": {"levels": top(turns(agent(**OWN)), low())},
}
READERS = {
    "member in turn": top(turns(agent(infos=("cost",)))),
    "member above": top(turns(agent(bonus=minus_cost, infos=("cost",))), low()),
}


@pytest.mark.parametrize("stack", STACKS)
def test_infos_of_long_decisions_of_members_are_what_the_parameter_says(stack):
    check_infos_of_long_decisions(**STACKS[stack])


def test_run_of_members_stopped_within_long_decisions_resumes_with_their_infos(tmp_path):
    check_resumes_with_infos(STACKS["group in turn above"]["levels"], tmp_path)


@pytest.mark.parametrize("reader", READERS)
def test_info_of_a_last_step_that_a_member_learns_from_warns_once_with_its_name(reader):
    check_warns_once(READERS[reader], "of level 'top'")
