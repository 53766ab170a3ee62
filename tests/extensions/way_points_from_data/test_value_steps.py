"""Steps between places by the values of the level below, and where there are none."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.planning.roadmap import Roadmap
from coach_rl.extensions.way_points_from_data import value_steps

PLACES = rl.GoalSpace(low=(0.0, 0.0), high=(4.0, 4.0), threshold=(0.3, 0.3), key="x")
BOX = spaces.Box(0, 4, (2,), np.float32)
SPACES = EnvironmentSpaces(
    observation=spaces.Dict({"x": BOX, rl.GOAL_KEY: BOX}),
    action=spaces.Box(-1, 1, (2,), np.float32),
)
ROADMAP = Roadmap.of_neighbours(np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]), 2)
STATES = {"x": ROADMAP.places.astype(np.float32)}
EDGES = np.arange(len(ROADMAP.begins))
GAMMA = 0.9
LEARNING = rl.LearningParameters(batch=16, learning_starts=1)
KINDS = {
    "hiql": (rl.HIQLAgentParameters, rl.HIQLAlgorithmParameters),
    "gciql": (rl.GCIQLAgentParameters, rl.GCIQLAlgorithmParameters),
}


def learner(kind, *, discount=GAMMA, **changes):
    agent, algorithm = KINDS[kind]
    goals = rl.DataGoalsParameters(goal=PLACES, actor_ahead=3, discount=discount)
    memory = rl.ReplayMemoryParameters(capacity=100, parts=(goals,))
    return agent(
        algorithm=algorithm(discount=discount), memory=memory, learning=LEARNING, **changes
    )


def at(low, goal=PLACES):
    """The place of an agent above another."""
    level = rl.LevelParameters(name="low", agent=low, goal_space=goal, horizon=9)
    agent = low.build(AgentContext(spaces=SPACES, num_envs=1, place=LevelPlace(level=level)))
    top = rl.LevelParameters(name="top", agent=low, goal_space=PLACES)
    return LevelPlace(level=top, below=level, agent_below=agent)


@pytest.mark.parametrize("kind", KINDS)
def test_value_steps_are_read_off_values_by_hand(kind, monkeypatch):
    place = at(learner(kind))
    # Places are 3, 4 and 5 m apart, and the value counts a step for each metre: after d steps of
    # which the last is rewarded with 0, V = -(1 + 0.9 + ... + 0.9 ** (d - 2)).
    values = {3: -1.9, 4: -2.71, 5: -3.439}

    def goal_values(seen):
        away = (seen[rl.GOAL_KEY] - seen["x"]).norm(dim=1)
        return torch.tensor([values[round(float(each))] for each in away])

    monkeypatch.setattr(place.agent_below.learner, "goal_values", goal_values)
    costs = rl.ValueSteps().build("agent", place, ())
    np.testing.assert_allclose(costs.of(ROADMAP, STATES, EDGES), ROADMAP.lengths, rtol=1e-5)
    assert costs.missed == 9.0
    monkeypatch.setattr(value_steps, "_AT_ONCE", 4)  # 6 edges in two parts
    np.testing.assert_allclose(costs.of(ROADMAP, STATES, EDGES), ROADMAP.lengths, rtol=1e-5)
    assert costs.of(ROADMAP, STATES, EDGES[:0]).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_value_steps_are_those_of_the_networks(kind):
    place = at(learner(kind))
    low = place.agent_below
    found = rl.ValueSteps().build("agent", place, ()).of(ROADMAP, STATES, EDGES)
    seen = {
        "x": torch.from_numpy(STATES["x"][ROADMAP.begins]),
        rl.GOAL_KEY: torch.from_numpy(STATES["x"][ROADMAP.ends]),
    }
    if kind == "hiql":
        values = low.learner.value.call(low.learner.value.online, seen).mean(dim=0)[:, 0]
    else:
        values = low.learner.value.call(low.learner.value.online, seen)
    left = 1 + (1 - GAMMA) * np.minimum(values.detach().double().numpy(), 0)
    np.testing.assert_allclose(found, 1 + np.log(left) / np.log(GAMMA), rtol=1e-5)


def test_value_steps_without_values_below_are_refused():
    cloning = rl.BCAgentParameters(memory=learner("hiql").memory, learning=LEARNING)
    with pytest.raises(ConfigurationError, match=r"or GCIQLAgentParameters, got PolicyAgent with"):
        rl.ValueSteps().build("agent", at(cloning), ())
    script = LevelPlace(level=None, below=None, agent_below=None)
    with pytest.raises(ConfigurationError, match="got NoneType"):
        rl.ValueSteps().build("agent", script, ())


def test_value_steps_of_values_that_count_no_steps_are_refused():
    place = at(learner("hiql"))
    place.agent_below.discount = 0.0
    with pytest.raises(ConfigurationError, match=r"discount between 0 and 1; got .* of 0.0 at"):
        rl.ValueSteps().build("agent", place, ())
    dense = replace(PLACES, reward="dense")
    with pytest.raises(ConfigurationError, match="use costs=EdgeLengths"):
        rl.ValueSteps().build("agent", at(learner("hiql"), dense), ())


def test_value_steps_of_filters_that_change_goals_are_refused():
    scaled = rl.InputFilter(observation={"x": (rl.ObservationNormalizationFilter(),)})
    low = rl.IQLAgentParameters(input_filter=scaled)
    place = at(low)
    place.agent_below.learner.goal_values = lambda seen: seen["x"]
    with pytest.raises(ConfigurationError, match="nor change goals; got filters for x"):
        rl.ValueSteps().build("agent", place, ())
