"""Presets of agents that plan: what their panels set."""

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.goal_worlds import AntSymmetry
from coach_rl.extensions.planning.graph_agent import GraphAgentParameters
from coach_rl.extensions.planning.places import GridPlaces
from tests.presets.test_errors import P, built
from tests.presets.test_presets import load_graph_manager
from tests.refusals import check_refused


def test_point_maze_graph_plans_places():
    panel = {"hierarchy": "graph", "levels": 3, "spacing": 1.0}
    graph, *below = load_graph_manager("PointMaze_HAC", panel).parameters.stack
    assert graph.agent == GraphAgentParameters(places=GridPlaces(spacing=1.0))
    assert [each.goal_space.relative for each in below] == [False, True]


@pytest.mark.parametrize(
    ("level", "spacing"), [("point_maze_large", 0.5), ("ogbench_point_maze_giant", 2.0)]
)
def test_point_maze_graph_spacing_by_maze(level, spacing):
    if level.startswith("ogbench"):
        pytest.importorskip("ogbench", reason="it comes with the extra ogbench")
    panel = {"hierarchy": "graph", "level": level}
    top, low = load_graph_manager("PointMaze_HAC", panel).parameters.stack
    assert top.agent.places == GridPlaces(spacing=spacing)
    if level.startswith("ogbench"):
        assert spacing >= 2 * max(low.goal_space.threshold)


GRAPH_BELOW = {"hierarchy": "graph_below", "levels": 3}
ROBOTICS = "robotics_ant_maze_medium"
needs_robotics = pytest.mark.skipif(
    importlib.util.find_spec("gymnasium_robotics") is None,
    reason="gymnasium_robotics is not installed",
)


def test_graph_below_learner_goal_spaces():
    top, graph, low = load_graph_manager("PointMaze_HAC", GRAPH_BELOW).parameters.stack
    plain, _, lowest = load_graph_manager("PointMaze_HAC", {"levels": 3}).parameters.stack
    learner = plain.agent.learner
    starts = replace(learner.learning, learning_starts=200)
    assert top.agent == replace(plain.agent, learner=replace(learner, learning=starts))
    assert graph.agent == GraphAgentParameters(places=GridPlaces(spacing=0.5))
    assert low.agent == lowest.agent
    assert [each.goal_space.relative for each in (graph, low)] == [True, False]


@pytest.mark.parametrize(
    ("level", "layers"),
    [
        ("ant_double_key_chest", 3),  # none, one or two keys
        ("ant_push_stochastic", 9),  # the block: unmoved, or moved either way along two axes
        ("ant_fall", 9),  # three heights, and the block: unmoved, fallen or lifted
    ],
)
def test_walker_loads_in_other_mazes(level, layers):
    graphs, walkers = [], []
    for each in ("ant_maze_u12", level):
        manager = load_graph_manager("AntMaze_Graph", {"level": each, "num_envs": 2})
        manager.create_graph(Runtime())
        graphs.append(manager.graph.agents["graph"].graph.roadmap)
        walkers.append(manager.graph.agents["low"])
    walkers[1].load_policy(walkers[0].state_dict())
    places = np.unique(graphs[1].places[:, :2], axis=0)
    assert len(graphs[1].places) == layers * len(places)
    assert len(graphs[0].places) == len(np.unique(graphs[0].places[:, :2], axis=0))


@pytest.mark.parametrize("name", ["AntMaze_Graph", "AntMaze_Graph_TD3"])
def test_way_points_with_stance(name):
    walkers = []
    for level in ("ant_gaps", "ant_maze_bottleneck", "ant_reacher"):
        panel = {"level": level, "num_envs": 2, "stance": True}
        manager = load_graph_manager(name, panel)
        graph, low = manager.parameters.levels
        assert graph.agent.fixed_goal == (1.0, 1.0)
        pose = manager.parameters.environment.task.posed_elements + 2
        assert low.goal_space.size == pose == len(low.goal_space.threshold)
        manager.create_graph(Runtime(seed=1))
        walkers.append(manager.graph.agents["low"])
    walkers[1].load_policy(walkers[0].state_dict())


def test_graph_panel_overrides_world_settings():
    def settings(**panel):
        graph, low = load_graph_manager("AntMaze_Graph", panel).parameters.levels
        agent = graph.agent
        edges = agent.costs.missed, agent.forgetting, agent.setbacks
        return agent.places.spacing[0], edges, low.agent.algorithm.discount

    assert settings(level="ant_maze_u12") == (2.0, (10.0, 0.2, False), 0.98)
    assert settings(level="ant_maze_s") == (4.0, (20.0, 0.2, False), 0.998)
    assert settings(level="ant_key_chest") == (2.0, (10.0, 0.4, False), 0.998)
    assert settings(level="ant_fall_sparse") == (1.0, (10.0, 0.05, True), 0.98)
    given = {"spacing": 2.0, "missed": 5.0, "discount": 0.9, "forgetting": 0.1, "setbacks": False}
    assert settings(level="ant_fall_sparse", **given) == (2.0, (5.0, 0.1, False), 0.9)


@pytest.mark.parametrize("name", ["AntMaze_Graph", "AntMaze_Graph_TD3"])
def test_stance_is_on_in_worlds_with_gaps(name):
    def fixed_goal(**panel):
        panel = {"level": "ant_maze_bottleneck", **panel}
        return load_graph_manager(name, panel).parameters.levels[0].agent.fixed_goal

    assert fixed_goal() == (1.0, 1.0)
    assert fixed_goal(stance=False) == (1.0,)
    alone = {"level": "ant_maze_bottleneck", "hierarchy": "none"}
    assert len(load_graph_manager(name, alone).parameters.levels) == 1


@pytest.mark.parametrize("level", ["ant_maze_u12", "ant_reacher", "ant_push", "ant_key_chest"])
def test_symmetry_is_on_by_default(level):
    def walker(**panel):
        return load_graph_manager("AntMaze_Graph", {"level": level, **panel}).parameters.levels[1]

    assert walker().agent.symmetry == AntSymmetry()
    assert walker(stance=True).agent.symmetry == AntSymmetry(shows_axes=True)
    assert walker(symmetry=False).agent.symmetry is None


@needs_robotics
def test_world_without_pose_has_no_symmetry():
    walker = load_graph_manager("AntMaze_Graph", {"level": ROBOTICS}).parameters.levels[1].agent
    assert walker.symmetry is None


@pytest.mark.parametrize("discount", [0.9, 0.98, 0.998])
def test_reward_scale_by_discount(discount):
    manager = load_graph_manager("AntMaze_Graph", {"level": "ant_maze_u12", "discount": discount})
    (scale,) = manager.parameters.levels[1].agent.input_filter.reward
    assert scale.factor / (1 - discount) == pytest.approx(5.0)  # times its distance


def test_discount_of_one_is_allowed():
    panel = {"level": "ant_maze_u12", "discount": 1.0, "num_envs": 2}
    load_graph_manager("AntMaze_Graph", panel).create_graph(Runtime(seed=1))


@pytest.mark.parametrize(
    ("name", "panel", "pose"),
    [
        ("AntMaze_Graph", {}, [1.0]),
        ("AntMaze_Graph", {"stance": True}, [1.0, 1.0]),
        ("AntMaze_Graph_TD3", {}, [1.0]),
    ],
)
def test_hierarchy_straight_sends_the_goal(name, panel, pose):
    panel = {"level": "ant_maze_u12", "num_envs": 2, **panel}
    manager = load_graph_manager(name, {**panel, "hierarchy": "straight"})
    top, low = manager.parameters.levels
    graph, graph_low = load_graph_manager(name, panel).parameters.levels
    assert low == graph_low
    assert list(graph.agent.fixed_goal) == pose
    assert manager.parameters.validation is None
    goals = np.array([[0.5, 8.0], [3.0, -1.0]], np.float32)
    bounds = np.array([low.goal_space.low, low.goal_space.high], np.float32)
    sent = top.agent.policy({"desired_goal": goals}, spaces.Box(*bounds))
    np.testing.assert_array_equal(sent, np.column_stack([goals, [pose, pose]]))
    manager.create_graph(Runtime(seed=1))
    for _ in manager.train_and_act(EnvironmentSteps(20)):
        pass


@pytest.mark.parametrize("name", ["AntMaze_Graph", "AntMaze_Graph_TD3"])
def test_hierarchy_none_observes_position(name):
    manager = load_graph_manager(
        name, {"level": "ant_maze_u12", "num_envs": 2, "hierarchy": "none"}
    )
    (alone,) = manager.parameters.levels
    assert alone.goal_space.observed == "relative"
    manager.create_graph(Runtime(seed=1))
    seen = manager.graph.agents["alone"].observation_space["observation"]
    assert seen.shape == manager.graph.spaces.observation["observation"].shape


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            built("PointMaze_HAC", hierarchy="graph_below"),
            P,
            "has three levels ... got levels=2; set levels=3, or",
        ),
        (
            built("AntMaze_Graph", hierarchy="none", symmetry=True),
            P,
            "symmetry=True needs way-points ... hierarchy=none",
        ),
        (
            built("AntMaze_Graph", hierarchy="none", stance=True),
            P,
            "stance=True needs way-points",
        ),
        *(
            (
                built("AntMaze_Graph", hierarchy="straight", level=level),
                P,
                f"goals of {level} are more",
            )
            for level in ("ant_key_chest", "ant_push")
        ),
        *(
            pytest.param(
                built("AntMaze_Graph", level=ROBOTICS, **{setting: True}),
                P,
                f"{setting}=True needs ... {ROBOTICS} can't",
                marks=needs_robotics,
            )
            for setting in ("symmetry", "stance")
        ),
    ],
)
def test_planning_presets_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
