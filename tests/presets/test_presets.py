"""Every shipped preset builds, runs for a moment, survives its JSON; slow: keeps its promise."""

import ast
import importlib.util
import math
from collections import Counter
from ctypes.util import find_library
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import coach_rl as rl
import coach_rl.presets
from coach_rl.configuration.extensions import own_extensions
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.presets import shipped_presets
from coach_rl.configuration.trust import OURS_ALONE, code_in_json
from coach_rl.environments.mujoco import SHORT_NAMES
from coach_rl.memories import replay_memory
from coach_rl.presets import Mujoco_PPO, mujoco_tasks
from tests.samples import drawn

PRESETS = sorted(shipped_presets())
FILES = sorted({preset.path for preset in shipped_presets().values()})
HELPERS = {Path(file).stem for each in own_extensions() for file in each.helpers}
SHARED = {*coach_rl.presets.__all__, *HELPERS}
"""Files that presets import."""
PRESET_PACKAGES = {
    "Atari_DQN": "ale_py",
    "Atari_PPO": "ale_py",
    "Atari_Rainbow": "ale_py",
    "DMControl_PPO": "dm_control",
    "DMControl_Pixels_SAC": "dm_control",
    "DMControl_SAC": "dm_control",
    "DMControl_TD3": "dm_control",
    "LunarLander_DQN": "Box2D",
    "Fetch_DDPG_HER": "gymnasium_robotics",
    "MiniGrid_PPO": "minigrid",
    "SpeakerListener_MAPPO": "mpe2",
    "SpeakerListener_PPO": "mpe2",
    "TicTacToe_PPO": "pettingzoo",
}
"""What presets need that comes with an extra."""
THRESHOLDS = [
    ("CartPole_PPO", {}),
    ("Chain_PPO", {}),
    ("Pendulum_PPO", {}),
    ("Acrobot_PPO", {}),
    ("Mujoco_PPO", {"level": "inverted_pendulum", "steps": 200_000}),
    ("Mujoco_PPO_KL", {"level": "inverted_pendulum", "steps": 200_000}),
    ("Mujoco_PPO", {}),
    ("CartPole_DQN", {}),
    ("CartPole_Rainbow", {}),
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
    if name == "DMControl_Pixels_SAC" and not skip and find_library("EGL") is None:
        skip = True
        package = "EGL"
    marks = [pytest.mark.skipif(skip, reason=f"{package} is not installed")] if package else []
    return pytest.param(name, *rest, marks=marks)


@cache
def loaded(name):
    return rl.load_preset(rl.find_preset(name))


def load_graph_manager(name, panel):
    return loaded(name).build(panel)


def shortened(manager: rl.GraphManager, steps: int = 600) -> rl.GraphManager:
    """The same experiment, over 600 steps with two train records whatever the algorithm."""
    schedule = replace(
        manager.parameters.schedule,
        heatup=rl.EnvironmentSteps(0),
        training=rl.EnvironmentSteps(steps),
        evaluation_interval=rl.EnvironmentSteps(steps),
        evaluation_episodes=rl.EnvironmentEpisodes(1),
    )
    parameters = manager.parameters
    if hasattr(parameters, "data"):  # updates from which are counted instead
        updates = rl.TrainingSteps(20)
        schedule = replace(schedule, training=updates, evaluation_interval=updates)
        if hasattr(parameters, "stack"):
            stack = tuple(replace(each, agent=counted(each.agent)) for each in parameters.stack)
            changed = replace(parameters, schedule=schedule, stack=stack, updates=None)
            return type(manager)(changed)
        agent = counted(parameters.agent)
        return type(manager)(replace(parameters, schedule=schedule, agent=agent, updates=None))
    if hasattr(parameters, "stack"):  # of which the levels are made
        stack = tuple(replace(each, agent=hasty(each.agent)) for each in parameters.stack)
        return type(manager)(replace(parameters, schedule=schedule, stack=stack))
    if isinstance(parameters, rl.BasicGraphParameters):
        agent = hasty(parameters.agent, steps=steps)
        return type(manager)(replace(parameters, schedule=schedule, agent=agent))
    *upper, lowest = parameters.levels
    levels = (
        *(replace(each, agent=hasty(each.agent, 32)) for each in upper),  # which decide seldom
        replace(lowest, agent=hasty(lowest.agent)),
    )
    few = min(parameters.num_envs, 16)  # of which a rollout of 32 decisions has several each
    return type(manager)(replace(parameters, schedule=schedule, levels=levels, num_envs=few))


def counted(agent):
    """The agent learning little in as many updates as it counts; itself where it learns nothing."""
    if not hasattr(agent, "learning"):
        return agent
    agent = hasty(agent)
    return replace(agent, learning=replace(agent.learning, updates_per_step=1.0))


def hasty(agent, rollout=256, steps=600):
    """The agent learning little, and reporting soon.

    Args:
        agent: The agent's parameters.
        rollout: Environment steps of a rollout, where the agent learns from them.
        steps: Environment steps of the run; in two thirds of them other agents make 20 updates.
    """
    if isinstance(agent, rl.ScriptedAgentParameters | rl.UniformAgentParameters):
        return agent
    if hasattr(agent, "agents"):  # one for each option
        return replace(agent, agents=tuple(hasty(each, 32) for each in agent.agents))
    if hasattr(agent, "report_every"):
        return replace(agent, report_every=10)
    if hasattr(agent, "learner"):
        return replace(agent, learner=hasty(agent.learner))
    if hasattr(agent, "members"):
        members = [replace(each, agent=hasty(each.agent)) for each in agent.members]
        return replace(agent, members=tuple(members))
    if isinstance(agent, rl.OffPolicyAgentParameters):
        length = getattr(agent.memory.draws, "length", 1)  # a batch has whole sequences
        learning = replace(
            agent.learning,
            updates_per_step=30 / steps,
            learning_starts=steps // 3,
            report_every=9,
            batch=min(agent.learning.batch, max(32, length)),
        )
        return replace(agent, learning=learning)
    algorithm = replace(agent.algorithm, rollout=rl.EnvironmentSteps(rollout), epochs=1)
    return replace(agent, algorithm=algorithm)


def test_shipped_presets_are_all_files_but_shared_ones():
    folder = Path(coach_rl.presets.__file__).parent
    files = {path.stem for path in folder.glob("*.py")}
    assert files - {"__init__", *SHARED} <= set(PRESETS)
    assert set(PRESETS) - files == set(PRESETS) & {
        "AntMaze_Graph_TD3",
        "BitFlip_DQN_HER",
        "Mujoco_PPO_KL",
    }


def imports(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_presets_import_the_public_names_and_no_other_preset(file):
    ours = {name for name in imports(file) if name.startswith("coach_rl")}
    assert ours <= {"coach_rl", *(f"coach_rl.presets.{name}" for name in SHARED)}
    assert "coach_rl" in ours


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_of_a_panel_is_documented(name):
    panel = loaded(name).panel
    assert panel
    assert [argument.name for argument in panel.values() if not argument.meaning] == []


@pytest.mark.drawn(one_of=2)
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
        with pytest.raises(rl.ConfigurationError):
            preset.build({"level": f"{preset.levels[0]}x"})


WITH_MEMORIES = ["BitFlip_DQN_HER", "Pendulum_HAC", "Pendulum_SAC", "PointMaze_HIRO"]
ONE_THREAD = rl.Runtime(device="cpu", threads=1)
"""Two threads of a process wait for each other where tests share the cores."""
MORE_ROUNDS = {"Workshop_PPO_Selector": 1, "PointMass_PPO_Skills": 5, "TMaze_PPO_Options": 1}
"""Numbers of agents that learn in presets whose upper level decides more often than others."""


STEPS = {"DMControl_Pixels_SAC": 150}
"""Environment steps of those whose every step is drawn as a picture."""


@pytest.mark.parametrize("name", drawn([preset_case(name) for name in PRESETS], one_of=8))
def test_preset_trains_and_evaluates(name):
    manager = shortened(load_graph_manager(name, {}), STEPS.get(name, 600))
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


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", [name for name in WITH_MEMORIES if name in PRESETS])
def test_evaluation_needs_no_memory_space(name, tmp_path, monkeypatch):
    settings = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(2))
    manager = shortened(load_graph_manager(name, {}), 300)
    result = rl.run_experiment(manager, ONE_THREAD, name=name, root=tmp_path, settings=settings)
    monkeypatch.setattr(replay_memory, "free_host_bytes", lambda: 0)
    again, _ = rl.evaluate_run(result.folder.path, episodes=rl.EnvironmentEpisodes(2))
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
        "DMControl_PPO",
        "TicTacToe_PPO",
        *("CartPole_CQL", "Mujoco_BC", "Mujoco_IQL", "Mujoco_ReBRAC", "Mujoco_TD3_BC"),
        *("PointMaze_DataGraph", "PointMaze_GCIQL", "PointMaze_HIQL", "Mujoco_Distillation"),
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


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.parametrize(
    ("name", "panel"), [preset_case(*each) for each in THRESHOLDS if each[0] in PRESETS]
)
def test_preset_reaches_its_threshold(name, panel):
    manager = load_graph_manager(name, panel)
    validation = manager.parameters.validation
    manager.create_graph(rl.Runtime(device="cpu"))
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
