"""Exported plans over places of which goals of the level below are a part."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.extensions.exporting.archive import Stack
from coach_rl.extensions.exporting.coach_policy import MET
from coach_rl.extensions.exporting.decisions import Request
from coach_rl.extensions.planning.exported import REMEMBERED
from coach_rl.extensions.planning.graph_rows import NOWHERE
from coach_rl.sessions.trained_agent import load_graph
from tests.extensions.exporting.test_export import exported, play_both, run_of
from tests.extensions.exporting.test_exported_levels import TD3, two_levels
from tests.random_graphs import KEY

OWN = rl.GoalSpace(key=KEY, elements=(0, 1), low=(-1.0,) * 2, high=(1.0,) * 2, threshold=(0.2,) * 2)
MOVES = rl.GoalSpace(key=KEY, elements=(2,), low=(-0.5,), high=(0.5,), threshold=(0.2,))
ONE = replace(OWN, elements=(0,), low=(-1.0,), high=(1.0,), threshold=(0.3,))
WITH_SPEED = rl.GoalSpace(
    key=KEY, elements=(0, 1, 3), low=(-1.0,) * 3, high=(1.0,) * 3, threshold=(0.3,) * 3
)
GRID = rl.GridPlaces(spacing=0.5)
PLANNERS = {  # the planner, and the goals of the level below
    "conditions": (rl.GraphAgentParameters(places=GRID, conditions=MOVES), OWN),
    "a part of a place": (rl.GraphAgentParameters(places=GRID, setbacks=True), ONE),
    "a part of a place and conditions": (
        rl.GraphAgentParameters(places=GRID, conditions=MOVES, retry_discount=0.5),
        replace(ONE, relative=True, observed="relative"),
    ),
    "conditions and a fixed goal": (
        rl.GraphAgentParameters(places=GRID, conditions=MOVES, fixed_goal=(0.25,), prune_after=3),
        WITH_SPEED,
    ),
}


ROWS = 300
IN_GRAPHS = ("conditions and a fixed goal",)
"""Those that are also exported, of which ways seldom cost the same."""


def run_by(name, folder):
    planner, below = PLANNERS[name]
    params = two_levels(planner, TD3, below, training=300).parameters
    top, low = params.levels
    levels = (replace(top, goal_space=OWN), replace(low, horizon=3))
    return run_of(rl.GraphManager(replace(params, levels=levels)), folder)


def decided(decision, seen, missed, *, edge=None, below=None):
    """What a plan sends in observations [R, ...], and what rows remember after it."""
    rows = len(missed)
    nothing = np.zeros(rows, np.int64)
    state = {"edge": nothing if edge is None else edge, "missed": missed}
    never = torch.zeros(rows, dtype=torch.bool)
    request = Request(
        seen={key: torch.from_numpy(values) for key, values in seen.items()},
        state={key: torch.from_numpy(values) for key, values in state.items()},
        starts=never,
        episodes=never,
        below=torch.from_numpy(nothing if below is None else below),
        normal=None,
        uniform=None,
        random=None,
        over=None,
    )
    with torch.no_grad():
        sent, after = decision(request)
    return sent.numpy(), {key: values.numpy() for key, values in after.items()}


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("name", IN_GRAPHS)
def test_exported_plan_decides_as_load_does(name, tmp_path):
    run = run_by(name, tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@pytest.mark.drawn(one_of=2)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("name", PLANNERS)
def test_decision_of_a_plan_sends_what_the_agent_does(name, tmp_path):
    """But where two ways cost the same, of which either may be taken."""
    graph, _ = load_graph(run_by(name, tmp_path), device="cpu")
    stack = Stack(graph)
    agent = stack.agents[0]
    plan, roadmap = agent.graph, agent.graph.roadmap
    generator = np.random.default_rng(0)
    seen = {
        key: generator.uniform(-1, 1, (ROWS, *space.shape)).astype(np.float32)
        for key, space in {**stack.spaces.observation.spaces, **OWN.shown}.items()
    }
    missed = generator.integers(1, len(roadmap.begins) + 1, (ROWS, REMEMBERED))
    missed[generator.random(missed.shape) < 0.8] = 0
    tries = [
        tuple(sorted((int(roadmap.begins[e - 1]), int(roadmap.ends[e - 1])) for e in row if e))
        for row in missed
    ]
    places = roadmap.nearest(agent._space.achieved(seen))
    aims = agent._space.aims(np.full((ROWS, roadmap.places.shape[1]), np.nan), seen)
    targets = agent._planner.targets(aims, places, tries, explores=False)
    at, way_points = agent._planner.ways(places, targets, tries, seen, explores=False)
    way_points = np.where(at == targets, NOWHERE, way_points)
    expected = agent._planner.sub_goals(way_points, aims, seen)

    sent, after = decided(stack.decisions[0], seen, missed)
    edges = after["edge"]
    differs = np.abs(sent - expected).max(axis=1) > 1e-5
    assert differs.mean() < 0.1
    for row in np.flatnonzero(differs):
        edge = edges[row] - 1
        aim = aims[row][: OWN.size] if np.isnan(aims[row]).any() else aims[row]
        nearest = roadmap.all_nearest(aim, to=places[row])
        to_go = plan._search(tuple(nearest.tolist()), True, tries[row])[0]
        cost = plan._costs(cautious=True, missed=tries[row])[edge] + to_go[roadmap.ends[edge]]
        assert edge >= 0
        assert np.isclose(cost, to_go[roadmap.begins[edge]], rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_try_that_ends_with_another_rest_of_the_place_is_in_vain(tmp_path):
    """The goal is met, and the elements that it lacks are not those of the way-point."""
    graph, _ = load_graph(run_by("conditions", tmp_path), device="cpu")
    stack = Stack(graph)
    roadmap = graph.agents["top"].graph.roadmap
    edges = np.arange(len(roadmap.begins))
    ends = roadmap.places[roadmap.ends]
    shape = stack.spaces.observation["observation"].shape
    seen = {
        key: np.zeros((len(edges), *space.shape), np.float32)
        for key, space in {**stack.spaces.observation.spaces, **OWN.shown}.items()
    }
    assert shape[0] > 2
    seen["observation"][:, :2] = ends[:, :2]
    for rest, is_in_vain in ((ends[:, 2], False), (-ends[:, 2], True)):
        seen["observation"][:, 2] = rest
        nothing = np.zeros((len(edges), REMEMBERED), np.int64)
        below = np.full(len(edges), MET)
        _, after = decided(stack.decisions[0], seen, nothing, edge=edges + 1, below=below)
        np.testing.assert_array_equal(after["missed"][:, 0] > 0, is_in_vain)
