"""Action masks of the members of a group, and of the agent that chooses among them."""

from dataclasses import replace
from functools import partial

import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.stages.action_masks import ActionMasks
from coach_rl.core.errors import SpaceError
from tests.agents.masked_world import ACTIONS
from tests.agents.test_action_masks import MASKED, context, dqn, ppo
from tests.builders import created, flat
from tests.refusals import check_refused


def shown_key(agent):
    """The key of an agent's mask; None where it has none."""
    masks = agent.stages.of(ActionMasks)
    return None if masks is None else masks.key


def chosen_by(chooser):
    """Five members for a space of five actions, so that their mask would fit the chooser too."""
    members = tuple(rl.GroupMember(agent=dqn(name=str(number))) for number in range(5))
    return rl.AgentGroupParameters(members=members, arbiter=rl.SelectedTurns(agent=chooser))


@pytest.mark.parametrize("agent", [{"action_mask": None}, {"action_mask": "option_mask"}])
def test_agent_that_chooses_may_leave_the_mask_of_actions_to_others(agent):
    shown = {**MASKED, "option_mask": spaces.MultiBinary(5)}
    group = chosen_by(ppo(name="chooser", **agent)).build(context(shown, ACTIONS["one"]))
    assert {name: shown_key(each) for name, each in group.members.items()} == {
        "0": "action_mask",
        "1": "action_mask",
        "2": "action_mask",
        "3": "action_mask",
        "4": "action_mask",
        "chooser": agent["action_mask"],
    }


@pytest.mark.parametrize("by_info", [False, True])
def test_members_of_a_group_take_allowed_actions_alone(by_info):
    pytest.importorskip("pettingzoo")
    environment = rl.PettingZooParameters(
        level="tests.environments.masked_parallel:Turns",
        kwargs={"by_info": by_info},
        action_mask="info:legal" if by_info else None,
    )
    members = (
        rl.GroupMember.of(replace(ppo(), name="one")),
        rl.GroupMember.of(replace(dqn(), name="two")),
    )
    group = rl.AgentGroupParameters(members=members)
    steps = {"training": 600, "heatup": 60, "evaluation_interval": 300, "evaluation_episodes": 2}
    run = created(flat(group, environment, num_envs=3, **steps))
    (group,) = run.graph.agents.values()
    for name, size in (("one", 3), ("two", 4)):
        member = group.members[name]
        assert shown_key(member) == f"{name}/action_mask"
        assert set(member.observation_space.spaces) == {f"{name}/observation"}
        assert member.action_space.n == size
    run.run()  # the environment raises where an action is forbidden
    run.close()


def test_mask_of_members_is_refused_for_the_agent_that_chooses():
    check_refused(
        partial(chosen_by(ppo(name="chooser")).build, context(MASKED, ACTIONS["one"])),
        SpaceError,
        "set action_mask=None for the agent that chooses",
    )
