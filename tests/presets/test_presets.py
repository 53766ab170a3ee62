"""Every shipped preset builds, runs for a moment, survives its JSON; slow: keeps its promise."""

import ast
import importlib.util
import math
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl.presets
from coach_rl.agents.off_policy_agent import OffPolicyAgentParameters
from coach_rl.agents.scripted_agent import ScriptedAgentParameters, UniformAgentParameters
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.configuration.trust import OURS_ALONE, code_in_json
from coach_rl.core.clock import ConstantSchedule
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.goal_worlds import AntSymmetry
from coach_rl.environments.mujoco import SHORT_NAMES
from coach_rl.exploration_policies import EpsilonZGreedy, GaussianNoise
from coach_rl.extensions.groups.agent_group import AgentGroupParameters
from coach_rl.extensions.hac.hac_agent import HACAgentParameters
from coach_rl.extensions.hac.hac_graph import HACGraphParameters
from coach_rl.extensions.planning.graph_agent import GraphAgentParameters
from coach_rl.extensions.planning.places import GridPlaces
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from coach_rl.extensions.testing import assert_same_state
from coach_rl.graph_managers import BasicGraphParameters, GraphManager
from coach_rl.memories import replay_memory
from coach_rl.presets import Mujoco_PPO, mujoco_tasks
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import RunSettings, run_experiment

PRESETS = sorted(shipped_presets())
FILES = sorted({preset.path for preset in shipped_presets().values()})
PRESET_PACKAGES = {
    "LunarLander_DQN": "Box2D",
    "Fetch_DDPG_HER": "gymnasium_robotics",
    "SpeakerListener_MAPPO": "mpe2",
    "SpeakerListener_PPO": "mpe2",
    "TicTacToe_PPO": "pettingzoo",
}
"""What presets need that comes with an extra."""
THRESHOLDS = [
    ("CartPole_PPO", {}),
    ("Pendulum_PPO", {}),
    ("Acrobot_PPO", {}),
    ("Mujoco_PPO", {"level": "inverted_pendulum", "steps": 200_000}),
    ("Mujoco_PPO_KL", {"level": "inverted_pendulum", "steps": 200_000}),
    ("Mujoco_PPO", {}),
    ("CartPole_DQN", {}),
    ("LunarLander_DQN", {}),
    ("CartPole_SAC", {}),
    ("Mujoco_DDPG", {"level": "inverted_pendulum", "steps": 50_000}),
    ("Mujoco_TD3", {"level": "inverted_pendulum", "steps": 50_000}),
    ("Mujoco_SAC", {"level": "inverted_pendulum", "steps": 50_000}),
    ("Pendulum_DDPG", {}),
    ("Pendulum_SAC", {}),
    ("BitFlip_DQN_HER", {}),
    ("Fetch_DDPG_HER", {}),
    ("FourRooms_PPO_Options", {}),
    ("Pendulum_HAC", {"steps": 120_000}),
    ("Pendulum_HAC", {"levels": 3}),
    ("PointMaze_HAC", {"steps": 150_000}),
    ("SpeakerListener_MAPPO", {"steps": 300_000}),
    ("SpeakerListener_PPO", {}),
    ("PointMass_PPO_Skills", {}),
    ("PointMaze_HIRO", {}),
    ("PointMaze_LESSON", {}),
    ("AntMaze_Graph", {"level": "ant_maze_u12", "steps": 300_000}),
]

LEVEL_PACKAGES = {"ogbench": "ogbench", "robotics": "gymnasium_robotics"}
"""Packages that levels with these first words come from."""


def preset_case(name, *rest):
    """A test's parameters, skipped where the preset's package is not installed."""
    package = PRESET_PACKAGES.get(name)
    skip = package is not None and importlib.util.find_spec(package) is None
    marks = [pytest.mark.skipif(skip, reason=f"{package} is not installed")] if package else []
    return pytest.param(name, *rest, marks=marks)


@cache
def loaded(name):
    return load_preset(find_preset(name))


def load_graph_manager(name, panel):
    return loaded(name).build(panel)


def shortened(manager: GraphManager, steps: int = 600) -> GraphManager:
    """The same experiment, over 600 steps with two train records whatever the algorithm."""
    schedule = replace(
        manager.parameters.schedule,
        heatup=EnvironmentSteps(0),
        training=EnvironmentSteps(steps),
        evaluation_interval=EnvironmentSteps(steps),
        evaluation_episodes=EnvironmentEpisodes(1),
    )
    parameters = manager.parameters
    if isinstance(parameters, HACGraphParameters):
        stack = tuple(replace(each, agent=hasty(each.agent)) for each in parameters.stack)
        return type(manager)(replace(parameters, schedule=schedule, stack=stack))
    if isinstance(parameters, BasicGraphParameters):
        return type(manager)(replace(parameters, schedule=schedule, agent=hasty(parameters.agent)))
    *upper, lowest = parameters.levels
    levels = (
        *(replace(each, agent=hasty(each.agent, 32)) for each in upper),  # which decide seldom
        replace(lowest, agent=hasty(lowest.agent)),
    )
    few = min(parameters.num_envs, 16)  # of which a rollout of 32 decisions has several each
    return type(manager)(replace(parameters, schedule=schedule, levels=levels, num_envs=few))


def hasty(agent, rollout=256):
    """The agent learning little, and telling of it soon."""
    if isinstance(agent, ScriptedAgentParameters | UniformAgentParameters):
        return agent
    if isinstance(agent, SkillAgentsParameters):
        return replace(agent, agents=tuple(hasty(each, 32) for each in agent.agents))
    if isinstance(agent, GraphAgentParameters):
        return replace(agent, report_every=10)
    if isinstance(agent, HACAgentParameters):
        return replace(agent, learner=hasty(agent.learner))
    if isinstance(agent, AgentGroupParameters):
        members = [replace(each, agent=hasty(each.agent)) for each in agent.members]
        return replace(agent, members=tuple(members))
    if isinstance(agent, OffPolicyAgentParameters):
        learning = replace(
            agent.learning, updates_per_step=0.05, learning_starts=200, report_every=9
        )
        return replace(agent, learning=learning)
    algorithm = replace(agent.algorithm, rollout=EnvironmentSteps(rollout), epochs=1)
    return replace(agent, algorithm=algorithm)


def test_shipped_presets_are_all_files_but_shared_ones():
    folder = Path(coach_rl.presets.__file__).parent
    files = {path.stem for path in folder.glob("*.py")}
    assert files - {"__init__", *coach_rl.presets.__all__} <= set(PRESETS)
    assert set(PRESETS) - files == {"AntMaze_Graph_TD3", "BitFlip_DQN_HER", "Mujoco_PPO_KL"}


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_presets_import_the_public_names_and_no_other_preset(file):
    ours = {name for name in imports(file) if name.startswith("coach_rl")}
    assert ours <= {"coach_rl", *(f"coach_rl.presets.{name}" for name in coach_rl.presets.__all__)}
    assert "coach_rl" in ours


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_of_a_panel_is_documented(name):
    panel = loaded(name).panel
    assert panel
    assert [argument.name for argument in panel.values() if not argument.meaning] == []


@pytest.mark.parametrize("name", PRESETS)
def test_levels_of_a_preset_can_be_built(name):
    preset = loaded(name)
    assert bool(preset.levels) == ("level" in preset.panel)
    for level in preset.levels:
        package = level.partition("_")[0]
        if package in LEVEL_PACKAGES and importlib.util.find_spec(LEVEL_PACKAGES[package]) is None:
            continue
        assert preset.build({"level": level}).parameters.environment.level.endswith(level)
    if preset.levels:
        with pytest.raises(ConfigurationError):
            preset.build({"level": f"{preset.levels[0]}x"})


ONE_THREAD = Runtime(device="cpu", threads=1)
"""Two threads of a process wait for each other where tests share the cores."""
MORE_ROUNDS = {"Workshop_PPO_Selector": 1, "PointMass_PPO_Skills": 5, "TMaze_PPO_Options": 1}
"""Numbers of agents that learn in presets whose upper level decides more often than others."""


@pytest.mark.parametrize("name", [preset_case(name) for name in PRESETS])
def test_preset_trains_and_evaluates(name):
    manager = shortened(load_graph_manager(name, {}))
    manager.create_graph(ONE_THREAD)
    records = list(manager.improve())
    manager.close()
    # A rollout is 256 steps long; 19 or 20 updates for the 400 steps that earn some.
    told = Counter(record.agent for record in records if record.kind == "train")
    if name in MORE_ROUNDS:
        assert min(told.values()) >= 2
        assert len(told) == MORE_ROUNDS[name]
    else:
        assert set(told.values()) == {2}
    for record in records:
        assert all(math.isfinite(value) for value in record.scalars.values()), record


@pytest.mark.parametrize(
    "name", ["BitFlip_DQN_HER", "Pendulum_HAC", "Pendulum_SAC", "PointMaze_HIRO"]
)
def test_evaluation_needs_no_memory_space(name, tmp_path, monkeypatch):
    settings = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))
    manager = shortened(load_graph_manager(name, {}), 300)
    result = run_experiment(manager, ONE_THREAD, name=name, root=tmp_path, settings=settings)
    monkeypatch.setattr(replay_memory, "free_host_bytes", lambda: 0)
    again, _ = evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(2))
    final = result.summary.evaluation
    assert again.scalars == final.scalars
    np.testing.assert_array_equal(again.arrays["episode/reward"], final.arrays["episode/reward"])


@pytest.mark.parametrize("name", PRESETS)
def test_preset_parameters_survive_json(name):
    parameters = load_graph_manager(name, {}).parameters
    document = encode(parameters)
    trust = OURS_ALONE.plus(*(name.partition(":")[0] for name in code_in_json(document)))
    assert decode(document, trust=trust) == parameters


@pytest.mark.parametrize("name", PRESETS)
def test_preset_carries_its_acceptance_test(name):
    validation = load_graph_manager(name, {}).parameters.validation
    if name in {
        "PointMass_DIAYN",
        "PointMaze_METRA",
        "Gates_HiTS",
        "AntMaze_HAC",
        "AntMaze_HIRO",
        "TicTacToe_PPO",
    }:  # no reward, or that of both players together, 0; no run that learned it
        assert validation is None
        return
    assert validation is not None
    assert validation.within.count > 0


@pytest.mark.parametrize("level", SHORT_NAMES)
@pytest.mark.parametrize("preset", ["Mujoco_PPO", "Mujoco_PPO_KL", "Mujoco_SAC"])
def test_mujoco_presets_take_every_level_by_both_names(preset, level):
    short = load_graph_manager(preset, {"level": level}).parameters
    gymnasium_id = f"{SHORT_NAMES[level].__name__}-v5"
    long = load_graph_manager(preset, {"level": gymnasium_id}).parameters
    assert short.agent == long.agent


@pytest.mark.parametrize("preset", ["Mujoco_PPO", "Mujoco_TD3"])
def test_panel_settings_override_the_tasks(preset):
    own = load_graph_manager(preset, {"level": "swimmer"}).parameters.agent.algorithm
    given = {"level": "swimmer", "discount": 0.5}
    assert own.discount == 0.9999
    assert load_graph_manager(preset, given).parameters.agent.algorithm.discount == 0.5


def test_task_settings_name_existing_tasks():
    for tasks in (Mujoco_PPO.TASKS, Mujoco_PPO.MARKS, mujoco_tasks.DISCOUNTS, mujoco_tasks.HEATUPS):
        assert set(tasks) <= set(SHORT_NAMES)


def test_large_networks_have_two_threads():
    stated = {name: loaded(name).build().parameters.threads for name in PRESETS}
    wide = {"Fetch_DDPG_HER", "Mujoco_DDPG", "Mujoco_SAC", "Mujoco_TD3"}
    wide |= {"Pendulum_DDPG", "Pendulum_SAC"}
    assert stated == {name: 2 if name in wide else 1 for name in PRESETS}


@pytest.mark.parametrize(("temperature", "learned"), [(0.2, False), (0.1, False), (None, True)])
def test_sac_on_mujoco_has_a_fixed_temperature_by_default(temperature, learned):
    panel = {"temperature": temperature}
    algorithm = load_graph_manager("Mujoco_SAC", panel).parameters.agent.algorithm
    assert algorithm.learn_temperature == learned
    assert algorithm.initial_temperature == (1.0 if learned else temperature)


def test_point_maze_goals_keep_the_minimum_path():
    panel = {"level": "point_maze_medium", "min_path": 6}
    maze = load_graph_manager("PointMaze_HAC", panel).parameters.environment.task
    assert maze.min_path == 6
    assert load_graph_manager("PointMaze_HAC", {}).parameters.environment.task.min_path == 1


@pytest.mark.parametrize(
    ("levels", "reaches"),
    [(2, [(2.0, 2.0)]), (3, [(6.0, 6.0), (0.8, 0.8)])],  # 2 m/s, 0.05 s a step; the map is 6 m wide
)
def test_point_maze_sub_goals_are_as_far_as_the_horizon(levels, reaches):
    panel = {"level": "point_maze_medium", "levels": levels}
    _, *below = load_graph_manager("PointMaze_HAC", panel).parameters.stack
    assert all(each.goal_space.relative for each in below)
    np.testing.assert_allclose([each.goal_space.reach for each in below], reaches)


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


def test_graph_below_learner_goal_spaces():
    top, graph, low = load_graph_manager("PointMaze_HAC", GRAPH_BELOW).parameters.stack
    plain, _, lowest = load_graph_manager("PointMaze_HAC", {"levels": 3}).parameters.stack
    learner = plain.agent.learner
    starts = replace(learner.learning, learning_starts=200)
    assert top.agent == replace(plain.agent, learner=replace(learner, learning=starts))
    assert graph.agent == GraphAgentParameters(places=GridPlaces(spacing=0.5))
    assert low.agent == lowest.agent
    assert [each.goal_space.relative for each in (graph, low)] == [True, False]


def test_graph_below_learner_saved_in_plan_continues():
    preset = loaded("PointMaze_HAC")
    panel = {"num_envs": 4, "steps": 1_200, "layers": (16, 16), "batch": 16, **GRAPH_BELOW}
    learning = "agent.learner.learning"
    often = {
        f"stack.0.{learning}.learning_starts": 10,
        f"stack.0.{learning}.report_every": 5,
        f"stack.2.{learning}.learning_starts": 60,
        f"stack.2.{learning}.report_every": 20,
        "stack.1.agent.report_every": 10,
        "schedule.evaluation_interval": None,
    }
    one, other = preset.configure(panel | often), preset.configure(panel | often)
    with one, other:
        one.create_graph(Runtime(seed=3))
        other.create_graph(Runtime(seed=4))
        records = one.improve()
        saved_at = [next(records) for _ in range(8)][-1]
        assert saved_at.environment_steps < 600
        graph = one.graph.training.levels[1].agent_rows
        assert (graph.way_point >= 0).any(), "on the way"
        other.load_state_dict(one.state_dict())
        trained = {record.level for record in records if record.kind == "train"}
        assert trained == {"top", "middle", "low"}
        list(other.improve())
        assert_same_state(one.state_dict()["agents"], other.state_dict()["agents"])


def test_flat_hac_agent_with_repeated_exploration():
    panel = {"hierarchy": "none", "exploration": "epsilon_z_greedy", "epsilon": 0.1, "noise": 0.3}
    (alone,) = load_graph_manager("PointMaze_HAC", panel).parameters.levels
    assert alone.agent.learner.exploration == EpsilonZGreedy(
        epsilon=ConstantSchedule(value=0.1),
        noise=GaussianNoise(scale=ConstantSchedule(value=0.3)),
    )
    assert alone.agent.ratio == 3.0


def test_hac_ant_position_is_hidden_below():
    for hierarchy, hidden in (("hac", True), ("none", False)):
        parameters = load_graph_manager("AntMaze_HAC", {"hierarchy": hierarchy}).parameters
        *above, lowest = [each.agent.learner for each in parameters.levels]
        assert (lowest.input_filter is not None) == hidden
        assert all(each.input_filter is None for each in above)
        for learner in (*above, lowest):
            assert learner.actor.torso.keys == ("observation", "desired_goal")
        assert parameters.evaluation_environment.task.targets == "evaluation"


def test_hiro_evaluation_target_is_the_papers():
    parameters = load_graph_manager("AntMaze_HIRO", {}).parameters
    assert parameters.environment.task.targets == "training"
    assert parameters.evaluation_environment.task.targets == "evaluation"


def test_hrac_parameters_equal_the_authors():
    """Torques of 30 Nm and metres: noise, its limits and what critics see are in these units."""
    parameters = load_graph_manager("AntMaze_HIRO", {}).parameters
    for level in parameters.levels:
        agent = level.agent
        assert agent.exploration == GaussianNoise(scale=ConstantSchedule(value=1.0), unit="raw")
        algorithm = agent.algorithm
        assert (algorithm.target_noise, algorithm.target_noise_clip) == (0.2, 0.5)
        assert algorithm.target_noise_unit == agent.critic.action_unit == "raw"
        assert agent.critic.action_layers == (0, 1)
        assert agent.critic.final_bound == agent.actor.final_bound == 3e-3
    _, low = parameters.levels
    acts_in = parameters.environment.build(num_envs=1).spaces.action
    if low.agent.output_filter is not None:
        acts_in = low.agent.output_filter.build(acts_in).agent_space
    assert (acts_in.low == -30).all()
    assert (acts_in.high == 30).all()


@pytest.mark.parametrize("name", ["AntMaze_HIRO", "AntMaze_HRAC", "PointMaze_HIRO"])
def test_hiro_levels_start_and_forget_together(name):
    top, low = load_graph_manager(name, {}).parameters.levels
    assert top.agent.memory.capacity * low.horizon == low.agent.memory.capacity
    first = low.agent.learning.learning_starts // low.horizon
    assert top.agent.learning.learning_starts == max(top.agent.learning.batch, first)


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


@pytest.mark.parametrize(
    ("name", "panel", "views"),
    [
        ("Workshop_PPO", {"task": "press"}, {"main": "press"}),
        ("Workshop_PPO", {"task": "all"}, {"main": "walk"}),
        ("Workshop_PPO", {"task": "all", "due_ahead": True}, {"main": "due"}),
        ("Workshop_PPO_Selector", {}, {"walk": "walk", "press": "press", "push": "push"}),
    ],
)
def test_workshop_of_an_ant_trains_with_the_place_of_the_task_ahead(name, panel, views):
    manager = shortened(load_graph_manager(name, {"robot": "ant", "num_envs": 16, **panel}))
    manager.create_graph(ONE_THREAD)
    records = list(manager.improve())
    agents = {name: manager.graph.agents[name] for name in views}
    for agent_name, view in views.items():
        assert f"task='{view}'" in agents[agent_name].symmetry.description
    manager.close()
    assert any(record.kind == "train" for record in records)
    assert all(math.isfinite(value) for record in records for value in record.scalars.values())


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


@pytest.mark.skipif(
    importlib.util.find_spec("gymnasium_robotics") is None,
    reason="gymnasium_robotics is not installed",
)
def test_world_without_pose_has_no_symmetry():
    level = "robotics_ant_maze_medium"
    walker = load_graph_manager("AntMaze_Graph", {"level": level}).parameters.levels[1].agent
    assert walker.symmetry is None


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.parametrize(("name", "panel"), [preset_case(*each) for each in THRESHOLDS])
def test_preset_reaches_its_threshold(name, panel):
    manager = load_graph_manager(name, panel)
    validation = manager.parameters.validation
    manager.create_graph(Runtime(device="cpu"))
    reached, seen = False, []
    for record in manager.improve():
        if record.kind == "evaluation" and record.environment_steps <= validation.within.count:
            seen.append(
                {each: record.scalars[f"evaluation/{each}"] for each in validation.wanted()}
            )
            reached = validation.is_reached(record.scalars)
        if reached:
            break
    manager.close()
    assert reached, f"{validation}: {seen}"
