"""An agent that plans on places of the data below: as the top level of runs from data."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from coach_rl.extensions.data.files import write_file
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.extensions.way_points_from_data.data_places import MeanCosts
from coach_rl.extensions.way_points_from_data.exported import decision_of
from tests.agents import decisions
from tests.builders import created, graph
from tests.refusals import check_refused

SMALL = rl.TorsoParameters(middleware=(8, 8), orthogonal=False)
ADAM = rl.AdamParameters(learning_rate=1e-3)
MOST = 30
"""Steps of an episode."""
BY_LENGTH = {
    "places": rl.DataPlaces(count=10, candidates=100, longest=1.0),  # metres
    "costs": rl.EdgeLengths(),
}
"""Edges of a graph that has several in every way, whatever few updates have made of values."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    params = rl.MazeDataParameters(kind="stitch", level="point_maze_u", episodes=8, steps=30)
    recorded, known = rl.maze_data(params, 0)
    return write_file(recorded, tmp_path_factory.mktemp("maze") / "maze.npz", known)


def lower(kind="hiql", *parts):
    goals = parts or (rl.DataGoalsParameters(actor_ahead=3),)
    common = {
        "learning": rl.LearningParameters(batch=16, learning_starts=1),
        "memory": rl.ReplayMemoryParameters(capacity=400, parts=goals),
        "update_mode": "eager",
        "policy": rl.PolicyParameters(torso=SMALL),
        "policy_optimizer": ADAM,
    }
    if kind == "gciql":
        critic = rl.CriticParameters(torso=SMALL)
        return rl.GCIQLAgentParameters(critic=critic, value=SMALL, **common)
    return rl.HIQLAgentParameters(value=rl.CriticParameters(torso=SMALL), **common)


def upper(**changes):
    places = rl.DataPlaces(count=10, candidates=100, longest=1000.0)
    return rl.DataGraphAgentParameters(**{"places": places, "every": 5, "exploring": 0.5} | changes)


def maze_run(data, *, top=None, low=None, updates=None, training=10, **changes):
    """A graph above a level that learns from a data set, in a small maze."""
    world = rl.GoalWorldParameters(level="point_maze_u", max_episode_steps=MOST)
    stack = (
        rl.LevelParameters(name="top", agent=top or upper(), goal_space=world.task.goal_space),
        rl.LevelParameters(
            name="low", agent=low or lower(), goal_space=world.task.subgoal_space, horizon=3
        ),
    )
    schedule = rl.batch_schedule(training, every=10, episodes=2)
    if updates is not None:
        schedule = replace(schedule, training=rl.EnvironmentSteps(training))
    given = {"stack": stack, "environment": world, "schedule": schedule, "num_envs": 2, **changes}
    return rl.BatchHierarchyParameters(data=str(data), updates=updates, **given)


def finished(params, seed=0):
    """A run that has ended, and its records."""
    manager = created(params, seed)
    return manager, list(manager.improve())


@pytest.mark.parametrize("kind", ["hiql", "gciql"])
def test_graph_is_built_from_the_data_below_and_evaluated(data, kind):
    manager, records = finished(maze_run(data, low=lower(kind)))
    top, low = (manager.graph.agents[name] for name in ("top", "low"))
    assert low.training_steps == manager.graph.clock.training_steps == 10
    graph = top.graph
    store = low.memory.store
    seen = store.read("/next_observations/achieved_goal", store.kept())
    assert len(graph.roadmap.places) == 10
    for place in graph.roadmap.places:  # each was achieved in the data
        assert np.isclose(seen, place.astype(np.float32)).all(axis=1).any()
    assert len(graph.roadmap.begins) == 90  # nothing is farther than 1,000 steps
    costs = MeanCosts(rl.ValueSteps().build("agent", top_place(manager), ()))
    now = costs.of(graph.roadmap, top._memory._places.states, np.arange(90))
    np.testing.assert_allclose(graph.try_costs, now)  # those of the last networks
    built = [each for each in records if each.level == "top" and "graph/edges" in each.scalars]
    assert [each.training_steps for each in built] == [5, 10]
    assert built[-1].scalars["graph/places"] == 10
    assert built[-1].scalars["graph/parts"] == 1
    assert built[-1].scalars["graph/edge_cost"] == pytest.approx(now.mean())
    evaluation = [each for each in records if each.kind == "evaluation"][-1]
    assert evaluation.scalars["evaluation/length_mean"] <= MOST


def top_place(manager):
    return manager.graph.contexts["top"].place


def test_evaluation_sends_way_points_of_the_graph(data):
    manager, _ = finished(maze_run(data, top=upper(**BY_LENGTH)))
    top = manager.graph.agents["top"]
    places = top.graph.roadmap.places
    sent_to = set()
    for start in places:
        for goal in places:
            rows = top.new_rows(1, 0)
            sent = acted(top, rows, manager, start=start, goal=goal)
            way_point = int(rows.way_point[0])
            wanted = goal if way_point < 0 else places[way_point]
            np.testing.assert_allclose(sent[0], wanted, atol=1e-6)
            sent_to.add(way_point)
    assert len(sent_to) > 2  # the goal itself, and several places


def acted(top, rows, manager, *, start=(-1.0, 1.0), goal=(-1.0, -1.0)):
    """The goal that a graph sends in an evaluation, [1, 2]."""
    there = np.float32([start])
    seen = {
        "observation": np.float32([[*start, 0.0, 0.0]]),
        "achieved_goal": there,
        "desired_goal": np.float32([goal]),
    }
    clock = manager.graph.evaluation.clock
    return top.act(rows, decisions.request(seen, greedy=True), clock)


def test_graph_that_is_not_built_yet_sends_the_goal_itself(data):
    manager, records = finished(maze_run(data, top=upper(every=11)))
    top = manager.graph.agents["top"]
    assert len(top.graph.roadmap.places) == 0
    np.testing.assert_allclose(acted(top, top.new_rows(1, 0), manager), [[-1.0, -1.0]])
    assert not [each for each in records if "graph/edges" in each.scalars]


def test_graph_stays_while_the_agent_acts_and_its_edges_learn(data):
    manager = created(maze_run(data, top=upper(**BY_LENGTH), updates=10, training=300), 0)
    top = manager.graph.agents["top"]
    before = None
    for record in manager.improve():
        if before is None and record.kind == "evaluation" and record.training_steps == 10:
            before = top.graph.roadmap
    assert before is not None
    assert manager.graph.agents["low"].training_steps > 50
    assert top.graph.roadmap is before
    assert top.graph.tries.sum() > 0


def test_graph_of_a_run_that_acts_too_soon_is_built_there_once(data):
    manager, records = finished(maze_run(data, top=upper(every=1000), updates=2, training=60))
    top = manager.graph.agents["top"]
    assert len(top.graph.roadmap.places) == 10
    assert len([each for each in records if "graph/edges" in each.scalars]) == 1


def test_building_a_graph_draws_from_a_stream_of_its_own(data):
    states = []
    for every in (5, 1000):
        manager, _ = finished(maze_run(data, top=upper(every=every)))
        states.append(manager.graph.agents["low"].state_dict())
        manager.close()
    assert_same_state(states[0], states[1])


@pytest.mark.parametrize(
    ("updates", "training"), [(None, 30), (10, 60)], ids=["from data", "and on in the world"]
)
def test_restored_run_continues_bit_for_bit(data, updates, training):
    whole = created(maze_run(data, updates=updates, training=training), 0)
    states = []
    for record in whole.improve():
        if record.kind == "evaluation" and not states:
            states.append(copy.deepcopy(whole.state_dict()))
    again = created(maze_run(data, updates=updates, training=training), 0)
    again.load_state_dict(states[0])
    again.run()
    assert_same_state(again.state_dict(), whole.state_dict())
    assert whole.graph.agents["top"]._built_at == (30 if updates is None else 10)


def test_policy_alone_plans_on_the_same_graph(data):
    manager, _ = finished(maze_run(data))
    top = manager.graph.agents["top"]
    other = created(maze_run(data), 1)
    loaded = other.graph.agents["top"]
    loaded.load_policy(top.policy_state_dict())
    np.testing.assert_array_equal(loaded.graph.roadmap.places, top.graph.roadmap.places)
    np.testing.assert_array_equal(loaded.graph.try_costs, top.graph.try_costs)
    np.testing.assert_array_equal(
        acted(loaded, loaded.new_rows(1, 0), other), acted(top, top.new_rows(1, 0), manager)
    )


def test_state_of_a_graph_of_a_grid_is_refused(data):
    manager = created(maze_run(data), 0)
    top, low = maze_run(data).stack
    grid = rl.GraphAgentParameters(places=rl.GridPlaces(spacing=1.0))
    levels = (replace(top, agent=grid), replace(low, agent=SCRIPT))
    other = created(
        graph(*levels, environment=rl.GoalWorldParameters(level="point_maze_u"), training=1)
    )
    with pytest.raises(SpaceError, match="another graph than the one that was saved"):
        manager.graph.agents["top"].load_policy(other.graph.agents["top"].policy_state_dict())


def test_held_out_losses_are_those_of_the_level_that_learns(data):
    callbacks = (rl.HeldOutLossParameters(batches=1),)
    manager, records = finished(maze_run(data, held_out=0.25, callbacks=callbacks))
    notes = [each for each in records if "held_out/value_loss" in each.scalars]
    assert {each.level for each in notes} == {"low"}
    assert len(manager.graph.agents["low"].memory) == 6 * 30


def built(**changes):
    """A call that builds such a run."""
    return lambda data: created(maze_run(data, **changes), 0)


def above_a_script(data):
    top, low = maze_run(data, top=upper(costs=rl.EdgeLengths())).stack
    levels = (top, replace(low, agent=SCRIPT))
    created(graph(*levels, environment=rl.GoalWorldParameters(level="point_maze_u"), training=10))


SCRIPT = rl.ScriptedAgentParameters(policy="still")
FILTERS = rl.InputFilter(observation={"achieved_goal": (rl.ObservationNormalizationFilter(),)})
SPEED = rl.GoalSpace(low=(-9.0,), high=(9.0,), threshold=(1.0,), key="observation", elements=(2,))
REFUSED = [
    (built(low=SCRIPT), ParameterError, "'script ... (Scripted ... has no replay memory"),
    (above_a_script, ConfigurationError, "ScriptedAgent keeps none; give that level HIQL"),
    (
        built(low=replace(lower(), input_filter=FILTERS)),
        ConfigurationError,
        "its InputFilter has changed achieved_goal;",
    ),
    (
        built(top=upper(conditions=SPEED)),
        ConfigurationError,
        "edges of a graph from data lead to whole places",
    ),
    (
        lambda data: created(maze_run(data, stack=maze_run(data).stack[:1]), 0),
        ConfigurationError,
        "no level below it has goals",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_graph_from_data_that_does_not_fit_is_refused(data, call, kind, message):
    check_refused(lambda: call(data), kind, message)


def test_graph_from_data_cannot_be_exported(data):
    manager, _ = finished(maze_run(data))
    with pytest.raises(ConfigurationError, match="cannot be exported: its ways begin with values"):
        decision_of(manager.graph.agents["top"], None)


@pytest.mark.parametrize("algorithm", ["hiql", "gciql"])
def test_preset_passes_its_settings_on(algorithm):
    preset = rl.load_preset(rl.find_preset("PointMaze_DataGraph"))
    changes = {"algorithm": algorithm, "places": 7, "longest": 9.0, "build_every": 3, "ahead": 11}
    top, low = preset.configure({**changes, "updates": 2, "horizon": 8}).parameters.stack
    assert top.agent.places == rl.DataPlaces(count=7, longest=9.0)
    assert top.agent.every == 3
    assert low.horizon == 8
    assert low.agent.algorithm.expectile == {"hiql": 0.7, "gciql": 0.9}[algorithm]
    assert low.agent.memory.parts[0].actor_ahead == 11


def test_preset_has_no_setting_for_random_goals_which_it_does_not_draw():
    preset = rl.load_preset(rl.find_preset("PointMaze_DataGraph"))
    assert "random_goals" not in preset.panel
    with pytest.raises(rl.UnknownNameError, match="random_goals"):
        preset.configure({"random_goals": 0.5})
