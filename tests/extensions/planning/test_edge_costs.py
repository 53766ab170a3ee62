"""What edges cost: lengths, or the steps that the critic of the level below expects."""

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import End
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.planning.edge_costs import expected_steps
from coach_rl.extensions.planning.roadmap import Roadmap
from tests.agents.decisions import outcome, request

PLACES = rl.GoalSpace(low=(0.0, 0.0), high=(4.0, 4.0), threshold=(0.3, 0.3), key="x")
BOX = spaces.Box(0, 4, (2,), np.float32)
SPACES = EnvironmentSpaces(
    observation=spaces.Dict({"x": BOX, rl.GOAL_KEY: BOX}),
    action=spaces.Box(-1, 1, (2,), np.float32),
)
ROADMAP = Roadmap.of_neighbours(np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]), 2)
EDGES = np.arange(len(ROADMAP.begins))


def critic_agent(goal=PLACES, discount=0.9):
    low = rl.DDPGAgentParameters(algorithm=rl.DDPGAlgorithmParameters(discount=discount))
    below = rl.LevelParameters(name="low", agent=low, goal_space=goal, horizon=9)
    context = AgentContext(spaces=SPACES, num_envs=1, place=LevelPlace(level=below))
    return below, low.build(context)


def at(goal=PLACES, **settings):
    below, agent = critic_agent(goal, **settings)
    level = rl.LevelParameters(
        name="top", agent=rl.ScriptedAgentParameters(policy="still"), goal_space=PLACES
    )
    return LevelPlace(level=level, below=below, agent_below=agent)


def by_value(place, values, **settings):
    """Costs where the critic says that states are worth `values(state, goal)`."""
    learner = place.agent_below.learner
    learner.values = lambda seen, action: values(seen["x"], seen[rl.GOAL_KEY])
    return rl.CriticSteps(**settings).build("agent", place, ())


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.998, 1.0])
def test_steps_are_read_off_values_of_minus_one_a_step(discount):
    steps = np.arange(1, 12)
    values = np.array([-sum(discount**k for k in range(n - 1)) for n in steps])
    np.testing.assert_allclose(expected_steps(values, discount), steps)


def test_values_that_no_steps_can_have_are_taken_for_none_and_for_very_many():
    assert expected_steps(np.array([0.3]), 0.9)[0] == 1.0
    (many,) = expected_steps(np.array([-50.0]), 0.9)
    assert 100 < many < np.inf


def test_the_critic_below_is_asked_from_where_an_edge_begins_to_where_it_ends():
    place = at()
    costs = by_value(place, lambda here, goal: -np.abs(goal - here).sum(axis=1) / 10)
    states = {"x": ROADMAP.places.astype(np.float32)}
    found = costs.of(ROADMAP, states, EDGES[1:3])
    away = np.abs(ROADMAP.places[ROADMAP.ends] - ROADMAP.places[ROADMAP.begins]).sum(axis=1)
    np.testing.assert_allclose(found, expected_steps(-away[1:3] / 10, 0.9), rtol=1e-6)
    assert costs.of(ROADMAP, states, EDGES[:0]).shape == (0,)


def test_edges_longer_than_the_horizon_are_taken_only_where_there_is_no_other_way():
    states = {"x": ROADMAP.places.astype(np.float32)}
    far = lambda here, goal: np.where(goal[:, 0] > 0, -7.0, 0.0)  # noqa: E731 - 12.4 steps, or 1
    found = by_value(at(), far).of(ROADMAP, states, EDGES)
    assert ((found > 1e6) == (ROADMAP.places[ROADMAP.ends, 0] > 0)).all()
    assert (by_value(at(), far, longest=20.0).of(ROADMAP, states, EDGES) < 20).all()


@pytest.mark.parametrize(("every", "later"), [(1, -0.8), (None, -0.4)])
def test_new_edges_are_priced_at_once_and_old_ones_as_often_as_asked_for(every, later):
    place, worth = at(), [-0.4]
    learner = place.agent_below.learner
    learner.values = lambda seen, action: np.full(len(action), worth[0])
    settings = {
        "places": rl.FarthestPoints(),
        "costs": rl.CriticSteps(every=every),
        "forgetting": 0.0,
    }
    context = AgentContext(spaces=SPACES, num_envs=2, place=place)
    agent, clock = rl.GraphAgentParameters(**settings).build(context), Clock(phase=Phase.TRAIN)
    seen = {"x": np.float32([[0, 0], [3, 4]]), rl.GOAL_KEY: np.float32([[3, 0]] * 2)}
    rows = agent.new_rows(2, 0)
    agent.act(rows, request(seen), clock)
    assert agent.graph.try_costs == pytest.approx(expected_steps(np.full(2, -0.4), 0.9))
    worth[0], ended = -0.8, np.zeros(2, np.int64)
    agent.observe(
        rows,
        outcome(seen, duration=ended + 9, below=ended + int(End.HORIZON)),
        clock,
    )
    agent.train(clock)
    assert agent.graph.try_costs == pytest.approx(expected_steps(np.full(2, later), 0.9))
