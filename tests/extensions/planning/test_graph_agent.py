"""The agent that plans: way-points through a maze, what it learns of them, saving in mid-plan."""

import copy
import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import End
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.films.camera import Camera, marks_of
from coach_rl.extensions.testing import assert_same_state
from tests.agents import decisions
from tests.agents.resuming import after, assert_resumes
from tests.builders import created, graph

PLACES = rl.GoalSpace(low=(0.0, 0.0), high=(4.0, 4.0), threshold=(0.3, 0.3), key="x")


def straight(observation, space):
    """Walks towards the goal and knows nothing of walls."""
    away = observation[rl.GOAL_KEY] - observation["observation"][:, :2]
    return np.clip(3 * away, -1, 1).astype(np.float32)


SCRIPT = rl.ScriptedAgentParameters(policy=straight)
LEARNER = rl.HACAgentParameters(
    learner=rl.DDPGAgentParameters(
        learning=rl.LearningParameters(batch=32, updates_per_step=0.05, learning_starts=100),
        actor=rl.ActorParameters(torso=rl.TorsoParameters(middleware=(16,))),
        critic=rl.CriticParameters(torso=rl.TorsoParameters(middleware=(16,))),
    )
)


def experiment(steps, level="point_maze_u", low=SCRIPT, **fields):
    world = rl.GoalWorldParameters(level=level)
    planner = rl.GraphAgentParameters(
        **{"places": rl.GridPlaces(spacing=0.5), "report_every": 100, **fields}
    )
    sub_goals = world.task.subgoal_space
    params = graph(
        rl.LevelParameters(name="graph", agent=planner, goal_space=world.task.goal_space),
        rl.LevelParameters(name="low", agent=low, goal_space=sub_goals, horizon=15),
        environment=world,
        num_envs=8,
        training=steps,
    )
    return rl.HRLGraphManager(params)


def at(own=PLACES, sub_goal=PLACES):
    agent = rl.ScriptedAgentParameters(policy="still")
    return LevelPlace(
        level=rl.LevelParameters(name="top", agent=agent, goal_space=own),
        below=rl.LevelParameters(name="low", agent=agent, goal_space=sub_goal, horizon=9),
    )


def build(place=None, observed=None, **fields):
    """The agent at a place; `observed` has the sizes of observations."""
    params = rl.GraphAgentParameters(
        **{"places": rl.GridPlaces(spacing=1.0), "exploring": 0.0, **fields}
    )
    boxes = {key: spaces.Box(-9, 9, (size,)) for key, size in (observed or {}).items()}
    seen = EnvironmentSpaces(observation=spaces.Dict(boxes), action=spaces.Box(-9, 9, (2,)))
    return params.build(AgentContext(spaces=seen, num_envs=3, place=place or at()))


def request(positions, goals, starts=False, greedy=False):
    seen = {"x": np.float32(positions), rl.GOAL_KEY: np.float32(goals)}
    return decisions.request(seen, starts=starts, greedy=greedy)


def outcome(ends, positions=None):
    count = len(ends)
    positions = [[0.5, 0.5]] * count if positions is None else positions
    below, duration = np.array([int(end) for end in ends]), np.full(count, 9)
    seen = {"x": np.float32(positions)}
    return decisions.outcome(seen, reward=0.0, below=below, duration=duration)


def success_rate(manager, episodes=40):
    evaluation = manager.evaluate(rl.EnvironmentEpisodes(episodes))
    return evaluation.scalars["evaluation/success_rate"]


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "places",
    [
        rl.GridPlaces(spacing=0.5),
        rl.GridPlaces(spacing=0.5, visited=True),
        rl.FarthestPoints(spacing=0.5),
    ],
    ids=["grid", "visited_grid", "visited"],
)
def test_a_walker_that_knows_nothing_of_walls_finds_its_way_through_a_maze(places):
    manager = experiment(8_000, level="point_maze_medium", places=places, retry_discount=0.0)
    manager.create_graph(rl.Runtime(seed=1))
    before = success_rate(manager)
    list(manager.improve())
    assert before < 0.7
    assert success_rate(manager) > 0.9
    manager.close()


@pytest.mark.parametrize(
    ("begins", "goal", "expected"),
    [
        ([[0.4, 0.6], [2.6, 2.2], [3.4, 3.4]], [3.4, 3.7], [[1.5, 1.5], [3.5, 3.5], [3.4, 3.7]]),
        ([[2.5, 2.5], [1.5, 2.5], [0.5, 1.5]], [2.0, 2.0], [[2.0, 2.0], [2.0, 2.0], [1.5, 1.5]]),
    ],
    ids=["along the diagonal", "as near to several places"],
)
def test_way_points_lead_to_the_nearest_place_at_the_goal_and_end_at_the_goal_itself(
    begins, goal, expected
):
    agent, clock = build(), Clock(phase=Phase.TRAIN)
    wanted = agent.act(agent.new_rows(3, 0), request(begins, [goal] * 3), clock)
    np.testing.assert_allclose(wanted, expected, atol=1e-6)


def test_size_of_the_graph_and_time_of_planning_are_told_of_each_stack_by_itself():
    agent, clock = build(), Clock(phase=Phase.TRAIN)
    training, evaluation = agent.new_rows(3, 0), agent.new_rows(3, 0)
    size = {"graph_places": 16.0, "graph_edges": float(len(agent.graph.roadmap.begins))}
    seen = request([[0.5, 0.5]] * 3, [[3.5, 0.5]] * 3)
    agent.act(training, seen, clock)
    agent.act(training, seen, clock)
    seconds = training.planning_seconds
    assert agent.planning(evaluation) == size
    assert agent.planning(training) == {**size, "planning_seconds": seconds / 6}
    assert agent.planning(training) == size
    agent = build(prune_after=2)
    for _ in range(2):
        agent.graph.note(0, 1, passed=False)
    assert agent.planning(evaluation) == {**size, "graph_pruned_edges": 1.0}


def test_a_way_point_that_was_missed_is_not_tried_again_at_once():
    agent = build()
    rows = agent.new_rows(3, seed=0)
    places, goals = [(0.5, 0.5)] * 3, [(3.5, 3.5)] * 3
    asked = request(places, goals)
    clock = Clock(phase=Phase.TEST)
    assert agent.act(rows, asked, clock).tolist() == [[1.5, 1.5]] * 3
    agent.observe(rows, outcome([End.HORIZON, End.GOAL, End.HORIZON | End.GOAL]), clock)
    saved, rows = rows.state_dict(), agent.new_rows(3, seed=0)
    rows.load_state_dict(saved)
    again = agent.act(rows, asked, clock).tolist()
    assert again[0] in ([0.5, 1.5], [1.5, 0.5])
    assert again[1:] == [[1.5, 1.5]] * 2
    agent.observe(rows, outcome([End.OUTER, End.GOAL, End.GOAL]), clock)
    assert agent.act(rows, asked, clock).tolist() == again, "remembered"
    asked = request(places, goals, starts=[True] * 3)
    assert agent.act(rows, asked, clock).tolist() == [[1.5, 1.5]] * 3, "until the next episode"
    agent.observe(rows, outcome([End.HORIZON] * 3), clock)
    anew = request([(0.5, 0.5)] * 3, [(3.5, 3.5)] * 3, starts=[True, False, False])
    assert agent.act(rows, anew, clock).tolist()[0] == [1.5, 1.5], "an episode of its own"


@pytest.mark.parametrize("phase", [Phase.TRAIN, Phase.TEST])
@pytest.mark.parametrize("end", [End.HORIZON, End.FAILURE, End.FAILURE | End.HORIZON])
def test_a_level_below_that_stopped_on_a_failure_has_missed_its_way_point(end, phase):
    agent, clock = build(), Clock(phase=phase)
    rows, asked = agent.new_rows(1, seed=0), request([(0.5, 0.5)], [(3.5, 3.5)])
    assert agent.act(rows, asked, clock).tolist() == [[1.5, 1.5]]
    agent.observe(rows, outcome([end]), clock)
    assert agent.graph.tries.sum() == (phase is Phase.TRAIN)
    assert agent.act(rows, asked, clock).tolist() != [[1.5, 1.5]], "not the same again at once"


def test_in_heatup_goals_are_random_and_teach_nothing():
    agent, heatup = build(), Clock(phase=Phase.HEATUP)
    rows, asked = agent.new_rows(3, seed=0), request([(0.5, 0.5)] * 3, [(3.5, 3.5)] * 3)
    found = []
    for _ in range(200):
        found.append(agent.act(rows, asked, heatup).copy())
        agent.observe(rows, outcome([End.HORIZON, End.GOAL, End.FAILURE]), heatup)
    drawn = np.concatenate(found)
    assert len(np.unique(drawn)) == drawn.size
    np.testing.assert_allclose(drawn.mean(axis=0), 2.0, atol=0.2)  # of all from 0 to 4
    assert 0 <= drawn.min() < 0.05
    assert 3.95 < drawn.max() <= 4
    last, other = agent.act(rows, asked, heatup), agent.new_rows(3, seed=0)
    other.load_state_dict(rows.state_dict())
    assert other.requested.tolist() == last.tolist()
    np.testing.assert_array_equal(
        agent.act(other, asked, heatup), agent.act(rows, asked, heatup), "saved in between"
    )
    train = Clock(phase=Phase.TRAIN)
    agent.observe(rows, outcome([End.HORIZON] * 3), train)
    assert not agent.graph.tries.any(), "nor does the decision that was open at its end"
    assert rows.missed_tries(np.arange(3), agent.records) == [()] * 3
    assert agent.act(rows, asked, train).tolist() == [[1.5, 1.5]] * 3


def test_way_points_ask_for_more_than_a_place_where_the_level_below_has_such_goals():
    pose = rl.GoalSpace(
        low=(0.0, 0.0, -1.0), high=(4.0, 4.0, 1.0), threshold=(0.3, 0.3, 1.0), key="x"
    )
    agent = build(at(own=replace(PLACES, elements=(0, 1)), sub_goal=pose), fixed_goal=(0.75,))
    asked = request([(0.5, 0.5, -0.2), (3.5, 3.5, 1.0)], [(3.5, 3.5)] * 2)
    found = agent.act(agent.new_rows(2, seed=0), asked, Clock(phase=Phase.TEST))
    assert found.tolist() == [[1.5, 1.5, 0.75], [3.5, 3.5, 0.75]]
    assert len(agent.graph.roadmap.places) == 16


def test_a_place_of_more_than_way_points_ask_for_is_passed_where_the_rest_is_met_too():
    own = rl.GoalSpace(low=(0.0, 0.0, 0.0), high=(4.0, 1.0, 1.0), threshold=(0.3,) * 3, key="x")
    walk = replace(PLACES, high=(4.0, 1.0), elements=(0, 1))
    agent = build(at(own=own, sub_goal=walk), places=rl.GridPlaces(spacing=(1.0, 1.0, 0.5)))
    rows, clock = agent.new_rows(3, 0), Clock(phase=Phase.TRAIN)
    seen = request([(0.5, 0.5, 0.0)] * 3, [(3.5, 0.5, 1.0)] * 3)
    asked = agent.act(rows, seen, clock)
    assert asked.tolist() == [[1.5, 0.5]] * 3, "with the key or without it"
    rows.way_point[:] = agent.graph.roadmap.nearest(np.array([[1.5, 0.5, 1.0]]))
    ends = [(1.5, 0.5, 1.0), (1.5, 0.5, 0.0), (0.9, 0.5, 0.0)]
    agent.observe(rows, outcome([End.GOAL, End.GOAL, End.HORIZON], ends), clock)
    here, there = int(rows.place[0]), int(rows.way_point[0])
    assert rows.missed_tries(np.arange(3), agent.records) == [
        (),
        ((here, there),),
        ((here, there),),
    ]
    edge = agent.graph.roadmap.edge(int(rows.place[0]), int(rows.way_point[0]))
    assert agent.graph.tries[edge] == 3
    walked, met = 0.8, 0.8  # the first two were there, the first with the key
    assert agent.graph.passed[edge] == pytest.approx(walked * met)


def test_a_try_tells_of_all_edges_that_ask_the_level_below_for_the_same():
    own = rl.GoalSpace(low=(0.0, 0.0, -0.5), high=(4.0, 1.0, 2.5), threshold=(0.3,) * 3, key="x")
    walk = replace(PLACES, high=(4.0, 1.0), elements=(0, 1))
    agent = build(at(own=own, sub_goal=walk), places=rl.GridPlaces(spacing=1.0))
    graph = agent.graph
    moves = graph.roadmap.places[graph.roadmap.ends] - graph.roadmap.places[graph.roadmap.begins]
    assert (moves[:, :2] != 0).any(axis=1).all(), "nothing is asked of a level that stays"
    place, plain, with_key, with_all, farther, later = graph.roadmap.nearest(
        np.array(
            [
                (0.5, 0.5, 0.0),
                (1.5, 0.5, 0.0),
                (1.5, 0.5, 1.0),
                (1.5, 0.5, 2.0),
                (2.5, 0.5, 0.0),
                (2.5, 0.5, 2.0),
            ]
        )
    ).tolist()
    for came_to in (with_key, plain):
        graph.note(place, plain, passed=True, came_to=came_to)
    graph.note(place, with_key, passed=False)
    edges = [graph.roadmap.edge(place, end) for end in (plain, with_key)]
    assert graph.roadmap.edge(place, with_all) is None, "two keys at once"
    assert graph.tries[edges].tolist() == [3, 3]
    walked, came_plain, found_key = 0.8, 0.8 + 0.2 * 0.2, 1.0 * 0.8
    assert graph.passed[edges] == pytest.approx([walked * came_plain, walked * found_key])
    ways = ((farther, plain), (farther, with_key), (later, with_all), (later, with_key))
    assert [graph.passed[graph.roadmap.edge(*way)] for way in ways] == pytest.approx(
        [
            walked * came_plain,  # whoever comes from elsewhere walks there as well
            walked * found_key,  # and finds as many keys
            walked,  # keys open no walls
            walked,  # nor says the first one where keys are lost again
        ]
    )


def test_evaluations_do_not_count_on_a_key_that_was_never_found():
    own = rl.GoalSpace(low=(0.0, 0.0, -0.5), high=(4.0, 1.0, 1.5), threshold=(0.3,) * 3, key="x")
    walk = replace(PLACES, high=(4.0, 1.0), elements=(0, 1))
    agent = build(at(own=own, sub_goal=walk), places=rl.GridPlaces(spacing=1.0))
    graph = agent.graph
    second, third, *with_key = graph.roadmap.nearest(
        np.array([(1.5, 0.5, 0), (2.5, 0.5, 0), (0.5, 0.5, 1), (1.5, 0.5, 1), (2.5, 0.5, 1)])
    ).tolist()
    way = [third, second, *with_key]
    for begin, end in itertools.pairwise(way):
        graph.note(begin, end, passed=True)
    rows = agent.new_rows(1, 0)
    asked = request([(2.5, 0.5, 0.0)], [(2.5, 0.5, 1.0)])
    trained = agent.act(rows, asked, Clock(phase=Phase.TRAIN))
    assert rows.way_point[0] != second, "a key may lie next to it"
    tested = agent.act(rows, asked, Clock(phase=Phase.TEST))
    assert rows.way_point.tolist() == [second]
    assert (trained != tested).any()
    agent.act(rows, asked, Clock(phase=Phase.TEST, samples=True))
    assert rows.way_point[0] != second
    twin = build(at(own=own, sub_goal=walk), places=rl.GridPlaces(spacing=1.0))
    twin.load_policy(agent.policy_state_dict())
    twin.act(rows, asked, Clock(phase=Phase.TEST))
    assert rows.way_point.tolist() == [second]


def test_places_tell_apart_what_goals_leave_open():
    own = replace(PLACES, low=(0.0, 0.0), high=(4.0, 1.0), elements=(0, 1))
    block = rl.GoalSpace(low=(-1.0,), high=(3.0,), threshold=(1.0,), key="x", elements=(2,))
    settings = {"places": rl.GridPlaces(spacing=(1.0, 1.0, 2.0)), "conditions": block}
    agent = build(at(own=own, sub_goal=own), observed={"x": 3, rl.GOAL_KEY: 2}, **settings)
    graph, clock = agent.graph, Clock(phase=Phase.TRAIN)
    assert len(graph.roadmap.places) == 8
    middle, pushed, target = graph.roadmap.nearest(
        np.array([(1.5, 0.5, 0.0), (1.5, 0.5, 2.0), (3.5, 0.5, 2.0)])
    )
    rows = agent.new_rows(1, 0)
    seen = request([(0.5, 0.5, 0.0)], [(3.5, 0.5)])
    assert agent.act(rows, seen, clock).tolist() == [[1.5, 0.5]]
    assert rows.way_point.tolist() == [middle], "no need to push the block"
    for place in (2.5, 1.5):
        end = graph.roadmap.nearest(np.array([(place + 1, 0.5, 0.0)]))[0]
        here = graph.roadmap.nearest(np.array([(place, 0.5, 0.0)]))[0]
        for _ in range(9):
            graph.note(int(here), int(end), passed=False)
    agent.act(rows, seen, clock)
    assert rows.way_point.tolist() == [pushed], "the way is open where the block was pushed away"
    there = request([(3.4, 0.5, 2.2)], [(3.5, 0.5)])
    assert agent.act(rows, there, clock).tolist() == [[3.5, 0.5]]
    assert (rows.place[0], rows.way_point[0]) == (target, -1), "the goal leaves the block open"


def test_rows_that_miss_at_once_teach_what_they_teach_one_after_another():
    """The way of each is as long as the one before has left it."""
    clock, learned = Clock(phase=Phase.TRAIN), []
    for together in (True, False):
        agent = build(setbacks=True)
        rows = agent.new_rows(2, 0)
        agent.act(rows, request([[0.5, 0.5]] * 2, [[3.5, 3.5]] * 2), clock)
        both = outcome([End.HORIZON] * 2, [[1.4, 0.5], [0.5, 3.5]])
        for each in [np.arange(2)] if together else [np.array([0]), np.array([1])]:
            seen = {"x": both.observation["x"][each]}
            ended = replace(both, rows=each, observation=seen, below=both.below[each])
            agent.observe(rows, ended, clock)
        learned.append(agent.state_dict())
    assert_same_state(*learned)


def test_tries_that_begin_without_what_way_points_ask_for_besides_teach_nothing():
    pose = rl.GoalSpace(
        low=(0.0, 0.0, -1.0), high=(4.0, 4.0, 1.0), threshold=(0.3, 0.3, 0.5), key="x"
    )
    agent = build(at(own=replace(PLACES, elements=(0, 1)), sub_goal=pose), fixed_goal=(1.0,))
    rows, clock = agent.new_rows(2, 0), Clock(phase=Phase.TRAIN)
    positions = [(0.5, 0.5, 0.6), (0.5, 0.5, 0.4)]
    agent.act(rows, request(positions, [(3.5, 3.5)] * 2), clock)
    agent.observe(rows, outcome([End.HORIZON] * 2, positions), clock)
    assert agent.graph.tries.sum() == 1, "the other one lies on its back"
    assert agent.graph.passed[agent.graph.tries > 0].tolist() == [0.8]


def test_edges_learn_from_what_the_level_below_reports():
    agent, clock = build(), Clock(phase=Phase.TRAIN)
    rows = agent.new_rows(3, 0)
    seen = request([[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]], [[3.5, 0.5]] * 3)
    agent.act(rows, seen, clock)
    agent.observe(rows, outcome([End.HORIZON, End.GOAL, End.TRUNCATED]), clock)
    grid = agent.graph.roadmap
    first, second, third = (
        grid.edge(*grid.nearest(np.array([[x, 0.5], [x + 1, 0.5]]))) for x in (0.5, 1.5, 2.5)
    )
    assert agent.graph.tries[[first, second, third]].tolist() == [1, 1, 0]
    assert agent.graph.passed[[first, second, third]].tolist() == [0.8, 1.0, 1.0]
    agent.act(rows, seen, clock)
    agent.observe(rows, outcome([End.HORIZON] * 3), Clock(phase=Phase.TEST))
    assert agent.graph.tries.sum() == 2


@pytest.mark.parametrize("landed", [(0.5, 0.5), (0.5, 3.5)])
def test_a_miss_costs_as_much_as_the_way_has_grown(landed):
    """The way out of the far corner, where it may land, has proved impassable."""
    agent, clock = build(setbacks=True), Clock(phase=Phase.TRAIN)
    rows, grid = agent.new_rows(1, 0), agent.graph.roadmap
    corner = int(grid.nearest(np.array([[0.5, 3.5]]))[0])
    for end in grid.ends[grid.edges_from(corner)]:
        for _ in range(60):
            agent.graph.note(corner, int(end), passed=False)
    ways = [grid.nearest(np.array([place])) for place in ([0.5, 0.5], [1.5, 0.5])]
    seen = request([[0.5, 0.5]], [[1.4, 0.5]])
    agent.act(rows, seen, clock)
    assert (rows.way_point, rows.target) == (ways[1], ways[1])
    agent.observe(rows, outcome([End.HORIZON], [landed]), clock)
    returns = landed == (0.5, 0.5)
    assert (agent.graph.next_places(*ways) == ways[1]) == returns
    assert (agent.graph.costs(*ways) == pytest.approx(1.25)) == returns


@pytest.mark.parametrize("climbed", [True, False])
def test_a_miss_into_a_gap_costs_a_hopeless_way_until_somebody_has_climbed_out(climbed):
    own = replace(PLACES, low=(0.0, 0.0, 0.0), high=(4.0, 1.0, 2.0), threshold=(0.3,) * 3)
    floor = replace(PLACES, elements=(0, 1))
    agent = build(at(own=own, sub_goal=floor), setbacks=True)
    rows, graph, clock = agent.new_rows(1, 0), agent.graph, Clock(phase=Phase.TRAIN)
    place = graph.roadmap.nearest
    begin, over, gap, up = place(
        np.array([(0.5, 0.5, 1.5), (1.5, 0.5, 1.5), (1.5, 0.5, 0.5), (2.5, 0.5, 1.5)])
    )
    if climbed:
        graph.note(int(gap), int(up), passed=True)
    agent.act(rows, request([(0.5, 0.5, 1.5)], [(3.5, 0.5, 1.5)]), clock)
    assert (rows.place, rows.way_point) == (begin, over)
    agent.observe(rows, outcome([End.HORIZON], [(1.1, 0.5, 0.5)]), clock)
    way = graph.costs(np.array([begin]), np.array([over]), cautious=True)
    assert way == pytest.approx(1.25 if climbed else 1 + 0.25 * 0.2 / 0.02)


def test_rows_that_explore_head_for_places_that_were_seldom_visited():
    agent, clock = build(exploring=1.0), Clock(phase=Phase.TRAIN)
    rows = agent.new_rows(3, 0)
    agent.records.visits[:] = 9
    agent.records.visits[15] = 0  # the last place: (3.5, 3.5)
    starts = request([[0.5, 0.5]] * 3, [[0.5, 3.5]] * 3, starts=[True] * 3)
    last = agent.graph.roadmap.places[15]
    for _ in range(40):
        agent.act(rows, starts, clock)
        if (rows.heading == last).all():
            break
    assert (rows.heading == last).all()
    wanted = agent.act(rows, request([[2.6, 2.6]] * 3, [[0.5, 3.5]] * 3), clock)
    np.testing.assert_allclose(wanted, [[3.5, 3.5]] * 3, atol=1e-6)
    agent.act(rows, request([[3.5, 3.5]] * 3, [[0.5, 3.5]] * 3), clock)  # it has arrived
    assert np.isnan(rows.heading).all()
    wanted = agent.act(rows, starts, Clock(phase=Phase.TEST))
    np.testing.assert_allclose(wanted, [[0.5, 1.5]] * 3, atol=1e-6)
    tested = replace(starts, greedy=np.array([True, False, True]))
    agent.act(rows, tested, clock)
    assert np.isnan(rows.heading).all(axis=1).tolist() == [True, False, True]


def ant_experiment(level, **settings):
    """The shipped graph above an ant that PPO teaches, which knows that its legs are alike."""
    panel = {"level": level, "num_envs": 4, "horizon": 8, "rollout": 64, "epochs": 1}
    panel |= {"minibatch": 32, "layers": (8,), "steps": 600}
    parameters = load_preset(find_preset("AntMaze_Graph")).build(panel).parameters
    graph, low = parameters.levels
    assert isinstance(low.agent.symmetry, rl.AntSymmetry)
    planner = replace(graph.agent, report_every=20, **settings)
    schedule = replace(
        parameters.schedule,
        evaluation_interval=rl.EnvironmentSteps(400),
        evaluation_episodes=rl.EnvironmentEpisodes(1),
    )
    world = replace(parameters.evaluation_environment, max_episode_steps=40)
    levels = (replace(graph, agent=planner), low)
    return rl.HRLGraphManager(
        replace(parameters, levels=levels, schedule=schedule, evaluation_environment=world)
    )


def experiment_of_three_levels():
    """A learner sends a graph to places, which sends a learner to way-points."""
    world = rl.GoalWorldParameters(level="point_maze_u")
    places = world.task.subgoal_space
    planner = rl.GraphAgentParameters(places=rl.GridPlaces(spacing=0.5), report_every=50)
    levels = (
        rl.LevelParameters(name="top", agent=LEARNER, goal_space=world.task.goal_space, horizon=9),
        rl.LevelParameters(name="graph", agent=planner, goal_space=places, horizon=3),
        rl.LevelParameters(name="low", agent=LEARNER, goal_space=places, horizon=6),
    )
    schedule = rl.ScheduleParameters(training=rl.EnvironmentSteps(1_200), evaluation_interval=None)
    return rl.HRLGraphManager(
        rl.GraphParameters(levels=levels, environment=world, num_envs=8, schedule=schedule)
    )


def state_of(manager, name):
    """The saved state of a level in training."""
    state = manager.state_dict()["training"]["top"]
    for level in manager.parameters.levels:
        if level.name == name:
            return state
        state = state["environment"]
    raise AssertionError(name)


def is_amid_plans(manager):
    """True if a row is on its way to a way-point, one explores, and one has missed another.

    Where way-points ask for a tilt, one has set out to a way-point without it.
    """
    plans, below = state_of(manager, "graph")["agent_rows"], state_of(manager, "low")["rows"]
    is_open = below["open"] & (below["decisions"] > 0) & (plans["way_point"] >= 0)
    explores, has_missed = ~np.isnan(plans["heading"]).all(axis=1), plans["missed"] >= 0
    asks_tilt = TILTED in [
        getattr(each.agent, "fixed_goal", None) for each in manager.parameters.levels
    ]
    is_upright = is_open & ~plans["is_as_asked"]
    found = is_open.any() and explores.any() and has_missed.any()
    return bool(found and (is_upright.any() or not asks_tilt))


TILTED = (-0.05,)
"""What way-points ask for where an ant mustn't stand upright: some decisions begin as asked."""
RUNS = {
    "grid": partial(experiment, 1_800),
    "pruned": partial(experiment, 1_800, prune_after=2, exploring=0.5),
    "visited grid": partial(experiment, 1_800, places=rl.GridPlaces(spacing=0.5, visited=True)),
    "visited": partial(experiment, 1_800, places=rl.FarthestPoints(count=15)),
    "critic": partial(
        experiment,
        1_800,
        places=rl.FarthestPoints(count=15),
        costs=rl.CriticSteps(every=30),
        low=LEARNER,
        exploring=1.0,
    ),
    "three levels": experiment_of_three_levels,
    "ant": partial(ant_experiment, "ant_maze_u12", fixed_goal=TILTED),
    "keys": partial(ant_experiment, "ant_key_chest"),
    "block": partial(ant_experiment, "ant_push", setbacks=True, forgetting=0.7),
}
"""Runs of all kinds of graphs, in mazes of points and ants."""


def built(name, seed):
    """One of the runs, with records all the time."""
    parameters = RUNS[name]().parameters
    schedule = replace(parameters.schedule, progress_interval=rl.EnvironmentSteps(10))
    return created(replace(parameters, schedule=schedule), seed)


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("name", RUNS)
def test_graph_saved_in_mid_plan_resumes_bit_for_bit(name, tmp_path):
    build = partial(built, name)
    middle = RUNS[name]().parameters.schedule.training.count / 2
    assert_resumes(build, tmp_path, after(middle, is_amid_plans))


def test_before_anything_was_visited_the_goal_itself_is_asked_for():
    agent, clock = build(places=rl.FarthestPoints(spacing=1.0)), Clock(phase=Phase.TRAIN)
    rows = agent.new_rows(2, 0)
    asked = request([[0.5, 0.5], [0.6, 0.5]], [[3.5, 3.5]] * 2)
    assert agent.act(rows, asked, clock).tolist() == [[3.5, 3.5]] * 2
    agent.observe(rows, outcome([End.HORIZON] * 2, [[0.5, 2.5], [0.6, 2.5]]), clock)
    assert agent.graph.roadmap.places.tolist() == [[0.5, 2.5]]
    agent.observe(rows, outcome([End.HORIZON] * 2, [[0.5, 0.5], [2.5, 2.5]]), clock)
    assert len(agent.graph.roadmap.places) == 3


def visited(*positions, **fields):
    """An agent whose rows have been at these places, which are those of its graph."""
    agent = build(places=rl.FarthestPoints(count=len(positions)), **fields)
    rows = agent.new_rows(len(positions), 0)
    ends = [End.GOAL] * len(positions)
    agent.observe(rows, outcome(ends, positions), Clock(phase=Phase.TRAIN))
    return agent


def number(agent, position):
    (found,) = (agent.graph.roadmap.places == position).all(axis=1).nonzero()[0]
    return found


def test_ways_lead_over_places_that_were_visited_and_on_to_the_goal():
    agent, clock = visited([0, 0], [2, 0], [2, 2]), Clock(phase=Phase.TEST)
    rows = agent.new_rows(3, 0)
    goals = [[3.0, 3.0]] * 3
    agent.graph.note(number(agent, [2, 0]), number(agent, [2, 2]), passed=True)
    for _ in range(4):
        agent.graph.note(number(agent, [0, 0]), number(agent, [2, 2]), passed=False)
    asked = agent.act(rows, request([[0.1, 0.1], [1.9, 0.5], [2, 2]], goals), clock)
    assert asked.tolist() == [[2, 0], [2, 2], [3, 3]]


def test_a_way_point_that_is_reached_already_is_left_out():
    agent, clock = visited([0, 0], [0.5, 0], [2, 0], [4, 0]), Clock(phase=Phase.TEST)
    for begin, end in 3 * list(itertools.combinations([0, 0.5, 2, 4], 2)):
        passed = (begin, end) in {(0, 0.5), (0.5, 2), (2, 4)}
        agent.graph.note(number(agent, [begin, 0]), number(agent, [end, 0]), passed=passed)
    rows = agent.new_rows(1, 0)
    asked = agent.act(rows, request([[0.23, 0.0]], [[4.0, 0.0]]), clock)  # (0.5, 0) is 0.27 away
    assert asked.tolist() == [[2, 0]]
    assert rows.place.tolist() == [number(agent, [0.5, 0])]


def test_goals_that_rows_explore_are_asked_for_once_from_the_nearest_place():
    agent, clock = visited([0, 0], [2, 2], exploring=1.0), Clock(phase=Phase.TRAIN)
    rows = agent.new_rows(1, 0)
    start, on = (request([[0, 0]], [[0.0, 4.0]], starts=[first]) for first in (True, False))
    agent.act(rows, start, clock)
    rows.heading[:] = [3.0, 3.5]
    rows.way_point[:] = 1
    assert agent.act(rows, on, clock).tolist() == [[2, 2]]
    beyond = request([[2, 2]], [[0.0, 4.0]])
    assert agent.act(rows, beyond, clock).tolist() == [[3.0, 3.5]]
    agent.act(rows, beyond, clock)
    assert np.isnan(rows.heading).all()


def test_a_try_towards_a_place_that_has_moved_meanwhile_teaches_nothing():
    agent, clock = visited([0, 0], [1, 0], [4, 0]), Clock(phase=Phase.TRAIN)
    rows = agent.new_rows(2, 0)
    moved = number(agent, [1, 0])
    agent.act(rows, request([[0, 0]] * 2, [[1.1, 0.0]] * 2), clock)
    assert rows.way_point.tolist() == [moved] * 2
    other = agent.new_rows(1, 0)
    agent.act(other, request([[2, 4]], [[0, 0]], starts=[True]), clock)
    assert agent.graph.roadmap.places[moved].tolist() == [2, 4]
    agent.observe(rows, outcome([End.HORIZON] * 2, [[0, 0]] * 2), clock)
    assert agent.graph.tries.sum() == 0
    agent.act(rows, request([[0, 0]] * 2, [[2.0, 4.0]] * 2), clock)
    agent.observe(rows, outcome([End.HORIZON] * 2, [[0, 0]] * 2), clock)
    assert agent.graph.tries.sum() == 2


def copied(agent):
    """An equal agent elsewhere, on a copy of the graph."""
    other = build(places=rl.FarthestPoints(count=len(agent.graph.roadmap.places)))
    other.load_policy(agent.policy_state_dict())
    return other


def test_a_plan_made_elsewhere_is_followed_and_learned_from_where_its_places_still_stand():
    agent, clock = visited([0, 0], [1, 0], [4, 0]), Clock(phase=Phase.TRAIN)
    worker = copied(agent)
    made, rows = worker.new_rows(2, 0), agent.new_rows(2, 0)
    seen = request([[0, 0]] * 2, [[1.1, 0.0], [4.0, 0.5]])
    asked = worker.act(made, seen, replace(clock, acts_only=True))
    agent.observe(agent.new_rows(1, 0), outcome([End.GOAL], [[2, 4]]), clock)
    assert [1, 0] not in agent.graph.roadmap.places.tolist(), "it has moved meanwhile"
    rows.follow(made.decisions())
    assert agent.act(rows, seen, clock).tolist() == asked.tolist() == [[1, 0], [4, 0]]
    agent.observe(rows, outcome([End.HORIZON] * 2, [[0, 0]] * 2), clock)
    edge = agent.graph.roadmap.edge(number(agent, [0, 0]), number(agent, [4, 0]))
    assert agent.graph.tries.nonzero()[0].tolist() == [edge]
    assert not agent.planning(rows).get("planning_seconds")


def test_a_worker_learns_nothing_of_the_graph_itself():
    worker = copied(visited([0, 0], [2, 0], [2, 2]))
    before, clock = copy.deepcopy(worker.state_dict()), Clock(phase=Phase.TRAIN, acts_only=True)
    rows = worker.new_rows(2, 0)
    worker.act(rows, request([[0, 4]] * 2, [[2, 0]] * 2, starts=[True] * 2), clock)
    worker.observe(rows, outcome([End.HORIZON] * 2, [[4, 4]] * 2), clock)
    assert_same_state(worker.state_dict(), before)
    missed = zip(rows.place.tolist(), rows.way_point.tolist(), strict=True)
    assert rows.missed_tries(np.arange(2), worker.records) == [(way,) for way in missed]


@pytest.mark.parametrize(
    "places", [rl.GridPlaces(spacing=0.5), rl.FarthestPoints(count=15)], ids=["grid", "visited"]
)
def test_films_of_a_level_that_plans_show_its_graph(places):
    with experiment(800, places=places) as manager:
        manager.create_graph(rl.Runtime(seed=1))
        for _ in manager.improve():
            pass
        stack = manager.graph.training
        environment, seen = stack.simulators, []
        environment.render = lambda row, marks=(): seen.append(marks) or np.zeros((2, 2, 3))
        Camera(stack, 0).picture()
        Camera(stack, 0).start()
        shown, at_the_start = seen
        edges = sum(mark.line_to is not None for mark in shown)
        tried = int((manager.graph.agents["graph"].graph.tries > 0).sum())
        assert tried / 2 <= edges <= tried + 1
        assert "low" in {mark.label for mark in shown}
        assert not at_the_start
        assert not marks_of(stack.levels[1], 0, lambda goal: (0.0, 0.0, 0.0))


def test_below_a_level_that_learns_a_graph_leads_to_places_where_goals_are_more_than_that():
    world = rl.GoalWorldParameters(level="ant_key_chest")
    goals, still = world.task.subgoal_space, rl.ScriptedAgentParameters(policy="still")
    levels = (
        rl.LevelParameters(name="top", agent=rl.UniformAgentParameters()),
        rl.LevelParameters(
            name="graph",
            agent=rl.GraphAgentParameters(places=rl.GridPlaces(spacing=4.0)),
            goal_space=goals,
            horizon=5,
        ),
        rl.LevelParameters(name="low", agent=still, goal_space=goals, horizon=5),
    )
    schedule = rl.ScheduleParameters(training=rl.EnvironmentSteps(100), evaluation_interval=None)
    parameters = rl.GraphParameters(levels=levels, environment=world, num_envs=2, schedule=schedule)
    with rl.HRLGraphManager(parameters) as manager:
        manager.create_graph(rl.Runtime(seed=1))
        list(manager.improve())
        assert manager.graph.agents["graph"].graph.tries.sum() == 20
