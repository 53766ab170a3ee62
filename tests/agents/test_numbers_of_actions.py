"""Too few actions for the rows are refused wherever an agent acts, by its name."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core import parameter_class
from coach_rl.core.errors import ActionError
from coach_rl.core.options import OptionSpace
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.extensions.scripts.scripted_agent import ActingOnly, ScriptedRows
from tests.agents.small_agents import ppo
from tests.builders import created, graph

GOALS = rl.GoalSpace(low=(-1, -1), high=(1, 1), threshold=(0.1, 0.1), elements=(0, 1))


def made(space, count):
    return actions_from_uniform(space, np.full((count, uniform_size(space)), 0.5))


def one(observation, space):
    return made(space, 1)


def two(observation, space):
    return made(space, 2)


def bare(observation, space):
    """An action without an axis of rows."""
    found = made(space, 1)
    return {key: part[0] for key, part in found.items()} if isinstance(found, dict) else found[0]


class Planner(ActingOnly):
    def __init__(self, params, space):
        super().__init__(params.name)
        self.policy, self.space = params.policy, space

    def new_rows(self, num_envs, seed):
        return ScriptedRows()

    def act(self, row_state, request, clock):
        return self.policy(request.observation, self.space)


@dataclass(frozen=True, kw_only=True)
class PlannerParameters:
    policy: object
    name: str = "planner"

    def build(self, context):
        return Planner(self, context.spaces.action)


class Chooser(OffPolicyAgent):
    def choose(self, row_state, request, clock):
        info = super().choose(row_state, request, clock)
        return replace(info, action=self.params.policy({}, self.action_space))


@parameter_class
class ChooserParameters(rl.TD3AgentParameters):
    AGENT = Chooser
    policy: object = None


def low(goal_space=GOALS, name="low", **changes):
    return rl.LevelParameters(name=name, agent=ppo(name), goal_space=goal_space, **changes)


def top(agent, *below, **changes):
    return (rl.LevelParameters(name="top", agent=agent, **changes), *below)


def scripted(policy):
    return rl.ScriptedAgentParameters(policy=policy)


PLACES = {
    "above goals": lambda each: top(scripted(each), low(horizon=3)),
    "above options": lambda each: top(scripted(each), low(OptionSpace(count=3), horizon=3)),
    "flat": lambda each: top(scripted(each)),
    "planner": lambda each: top(PlannerParameters(policy=each), low(horizon=3)),
    "choose": lambda each: top(ChooserParameters(policy=each), low(horizon=3)),
}


@pytest.mark.parametrize("policy", [one, two, bare])
@pytest.mark.parametrize("place", PLACES)
def test_agent_with_other_numbers_of_actions_than_rows_is_refused_and_named(place, policy):
    name = policy.__name__
    if "planner" in place or place == "choose":
        name = "Chooser.choose" if place == "choose" else "top"
    check_refused_and_named(PLACES[place](policy), name)


def check_refused_and_named(levels, name, **more):
    world = rl.PointMassParameters(max_episode_steps=7)
    params = graph(*levels, environment=world, num_envs=3, training=90_000, **more)
    with created(params) as manager, pytest.raises(ActionError) as caught:
        manager.run()
    assert name in str(caught.value)
    assert "3 rows were sent actions of shape (" in str(caught.value)
