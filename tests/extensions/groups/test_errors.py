"""Groups that are refused: a call, the kind of error, and parts of its message in their order."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import test_agent_group as groups
import test_arbiters as turns
import test_shared_agents as shared
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ActionError, RunError, SpaceError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.members.members import AgentView, MemberIndex
from tests.agents.decisions import request
from tests.refusals import check_refused


def group(*members, **settings):
    def call():
        with groups.created(groups.experiment(*members, **settings)) as manager:
            list(manager.improve())

    return call


def right(**changes):
    return group(groups.LEFT, replace(groups.RIGHT, **changes))


def members(*given, **left):
    return lambda: rl.AgentGroupParameters(members=(replace(given[0], **left), *given[1:]))


def discrete_level():
    observed = EnvironmentSpaces(
        observation=groups.TwoLives.spaces.observation, action=spaces.Discrete(2)
    )
    rl.AgentGroupParameters(members=(groups.LEFT,)).build(AgentContext(spaces=observed, num_envs=1))


def load_left_alone():
    with groups.created(groups.experiment()) as manager:
        found = groups.group_of(manager)
        found.load_policy({"left": found.state_dict()["left"]})


def long_decision(**changes):
    outcome = replace(
        groups._outcome_with(np.zeros(2)),
        duration=np.array([1, 3]),
        info={"dead": np.array([0.0, 1.0]), "pay": np.ones(2)},
    )
    member = replace(groups.LEFT, **{"reward": None, "terminated": None, **changes})
    bound = member.bound(observations={}, part=None)
    view = AgentView([MemberIndex(0, bound, np.arange(2))], 2)
    return lambda: view.outcome(outcome)


TWINS = shared.sharing(shared.ddpg).members


def in_turn(arbiter, agent=turns.RecorderParameters, **member):
    given = tuple(
        rl.GroupMember(agent=agent(name=name), observations=("x",), **member) for name in ("a", "b")
    )
    return lambda: turns.built(rl.AgentGroupParameters(members=given, arbiter=arbiter), 1)


def chooser(**changes):
    agent = turns.RecorderParameters(name="chooser")
    return rl.SelectedTurns(**{"agent": agent, "observations": ("x",), **changes})


def acts(group, **observation):
    """A group's first decision, in one row that sees this besides `x`."""

    def call():
        asked = request({"x": np.zeros((1, 1)), **observation}, rows=np.arange(1))
        built = group()
        built.act(built.new_rows(1, seed=0), asked, turns.CLOCK)

    return call


def wild(observation, space):
    return np.array([7])


@dataclass(frozen=True, kw_only=True)
class WildParameters:
    name: str = "wild"

    def build(self, context):
        return Wild(self.name, context.spaces.action)


class Wild(turns.Recorder):
    def act(self, row_state, request, clock):
        return wild(request.observation, self.space)


def with_hindsight(name):
    return rl.DQNAgentParameters(
        name=name,
        memory=rl.ReplayMemoryParameters(capacity=9, relabelling=rl.HindsightParameters()),
    )


def central(agent, **changes):
    member = {"observations": ("left",), "critic_observations": ("clock",), **changes}
    return group(replace(groups.LEFT, agent=agent, **member), groups.RIGHT)


def clash():
    both = rl.GroupMember(agent=shared.ddpg("left"), actions="left", observations=("left", "both"))
    member = replace(both, shares="walker", observations=("left", "observation"))
    observed = spaces.Dict({"left": shared.PLACE, "observation": shared.PLACE})
    seen = EnvironmentSpaces(observation=observed, action=spaces.Dict({"left": shared.PUSH}))
    rl.AgentGroupParameters(members=(member,)).build(AgentContext(spaces=seen, num_envs=1))


def other_observation():
    changed = replace(TWINS[1], observations=("both",))
    shared.manager(rl.AgentGroupParameters(members=(TWINS[0], changed)))


CASES = {
    rl.ParameterError: [
        (
            in_turn(chooser(agent=turns.RecorderParameters(name="a"))),
            "the selector and a member are called 'a'; choose another name",
        ),
        (
            members(groups.LEFT, replace(groups.RIGHT, agent=groups.ddpg("left"))),
            "need different names, got ['left', 'left']",
        ),
        (
            members(TWINS[0], replace(TWINS[1], agent=shared.walker("right"))),
            "differ in more than their names",
        ),
        (members(*TWINS, shares="left"), "shares 'left', which is the name of a member"),
    ],
    rl.ConfigurationError: [
        (
            in_turn(rl.Turns(), agent=with_hindsight),
            "agent 'a' acts in turn: ... hindsight ... leave that out, or give "
            "the agent a level of its own",
        ),
        (in_turn(chooser(agent=with_hindsight("of"))), "agent 'of' acts in turn: ... hindsight"),
        (in_turn(rl.Turns(order=("a",))), "member 'b' never acts: the order of Turns is a; add it"),
        (
            central(groups.ddpg("left")),
            "member 'left' has critic_observations ... as PPO's, got DDPGAgentParameters; leave",
        ),
        (
            central(rl.PPOAgentParameters(network=rl.ActorCriticParameters(shared_torso=True))),
            "critic_observations ... got PPOAgentParameters with shared_torso",
        ),
    ],
    SpaceError: [
        (
            in_turn(rl.EnvironmentTurns(key="now")),
            "member 'a' never acts: the environment shows no 'now/a' ... it shows",
        ),
        (
            central(rl.PPOAgentParameters(name="left"), observations=("left", "clock")),
            "'clock' among its critic_observations, and its policy sees it already",
        ),
        (load_left_alone, "has no member 'right'; it has left"),
        (
            right(actions=("right", "left")),
            "'left' is claimed by the members 'left' and 'right'; leave it to one of them",
        ),
        (
            right(actions="right/lift"),
            "no member of group 'group' acts under 'right/turn'; add a GroupMember for it",
        ),
        (right(actions=()), "member 'right' has no action keys; allowed: "),
        (right(observations=()), "member 'right' has no observation keys; allowed: "),
        (discrete_level, "needs actions to give its members parts of ... got Discrete"),
        (other_observation, "members that share 'walker' need equal spaces; 'right'"),
        (clash, "which are both 'observation' to the agent 'walker'"),
    ],
    rl.UnknownNameError: [
        (
            right(actions="rights"),
            "unknown action key 'rights'; did you mean 'right' ... (named by member 'right')",
        ),
        (right(observations=("right", "clocks")), "'clocks'; did you mean 'clock'? ... 'right'"),
        *(
            (
                right(**{field: "agents/right/rewards"}),
                "'agents/right/rewards'; did you mean 'agents/right/reward' ... member 'right'",
            )
            for field in ("reward", "terminated", "truncated")
        ),
        (
            in_turn(rl.Turns(order=("a", "bb"))),
            "'bb'; allowed: a, b ... named by the order of Turns",
        ),
        (in_turn(chooser(observations=("y",))), "observation key 'y' ... named by 'chooser'"),
    ],
    RunError: [
        *(
            (
                acts(in_turn(rl.EnvironmentTurns()), **{"turn/a": flag, "turn/b": flag}),
                f"row 0 shows a turn of {number} members ... one of turn/a, turn/b must be 1",
            )
            for number, flag in ((0, np.zeros(1)), (2, np.ones(1)))
        ),
        (
            group(world=groups.TwoForgetfulLives),
            "left out info 'agents/left/reward' of member 'left' in",
        ),
        (group(world=groups.TwoCrowdedLives), "(3, 2), needed is one number for each of 3"),
        *(
            (long_decision(**{kind: name}), f"'left' has {what} of its own, {rest}")
            for kind, name, what, rest in (
                ("terminated", "dead", "an end", "'dead' ... infos={'dead': 'maximum'})"),
                ("reward", "pay", "a reward", "'pay' ... last 3 steps; set ... {'pay': 'sum'})"),
            )
        ),
    ],
    ActionError: [
        (
            acts(in_turn(chooser(agent=WildParameters()))),
            "the selector 'wild' chose [7]; ... 0 to 1 of the members a, b",
        ),
        (
            acts(in_turn(chooser(agent=rl.ScriptedAgentParameters(policy=wild)))),
            "wild ... action 7 of row 0 lies outside",
        ),
    ],
}
"""Calls by kind of error, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("kind", "call", "message"), [(kind, *case) for kind in CASES for case in CASES[kind]]
)
def test_groups_invalid_input_error(kind, call, message):
    check_refused(call, kind, message)
