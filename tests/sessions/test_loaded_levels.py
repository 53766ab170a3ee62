"""A level takes over what one of another run has learned, and nothing else."""

import re
import shutil
import warnings
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
from coach_rl.architectures import ActorCriticParameters, TorsoParameters
from coach_rl.cli.main import main
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import GoalPointMassParameters
from coach_rl.extensions.testing import assert_same_state
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import HRLGraphManager, LevelParameters
from coach_rl.graph_managers.arrangement import LevelChain
from coach_rl.runs.checkpoint import find_checkpoint
from coach_rl.sessions.evaluation import evaluate_untrained, live_graph
from coach_rl.sessions.loaded_levels import Meaning, load_levels, loading_report
from coach_rl.sessions.session import Audience, fork_experiment, resume_experiment, run_experiment
from coach_rl.telemetry import description
from tests import builders, small_runs
from tests.small_runs import QUIET, experiment, manifest_of

PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))
TASK = Runtime(seed=7, device="cpu")
NORMALISED = InputFilter(observation={"observation": (ObservationNormalizationFilter(),)})


def ppo(**more):
    agent = small_runs.ppo(16, epochs=1, minibatch=8, scale_returns=True)
    return replace(agent, **{"input_filter": NORMALISED, **more})


def ddpg(**more):
    given = {"learning_starts": 10, "updates_per_step": 0.2, "normalise_observations": 5.0}
    return builders.ddpg(**given | more)


def graph(low=None, top=None, *, steps=120, **of_low):
    given = {"agent": low or ddpg(), "goal_space": PLACES, "horizon": 4, **of_low}
    params = builders.graph(
        LevelParameters(name="top", agent=top or ppo()),
        LevelParameters(**{"name": "low", **given}),
        num_envs=4,
        training=steps,
        progress_interval=4,
    )
    return HRLGraphManager(params)


def run(graph_manager, root, **audience):
    return run_experiment(
        graph_manager,
        TASK,
        name="walk",
        root=root,
        settings=QUIET,
        audience=Audience(**audience),
    ).folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with PPO above DDPG, to load from."""
    return run(graph(), tmp_path_factory.mktemp("other")).path


def saved_agent(path, level):
    return small_runs.state_of(path)["agents"][level]


def states_at_start(graph_manager, tmp_path):
    """The agents' states when a run begins."""
    found = {}

    def look(graph_manager, task, folder):
        found.update(graph_manager.state_dict()["agents"])

    def stop(record, run):
        run.stop("no more is needed")

    folder = run(graph_manager, tmp_path, on_start=look, callbacks=(stop,))
    return found, folder


def same(one, other):
    try:
        assert_same_state(one, other)
    except AssertionError:
        return False
    return True


def test_load_off_policy_level_has_networks_and_normaliser_only(trained, tmp_path):
    fresh, _ = states_at_start(graph(), tmp_path / "a")
    state, folder = states_at_start(graph(load=str(trained)), tmp_path / "b")
    theirs, low = saved_agent(trained, "low"), state["low"]
    assert same(low["networks"], theirs["networks"])
    assert "target" in low["networks"]["actor"]
    assert same(low["normaliser"], theirs["normaliser"])
    assert not same(low["networks"], fresh["low"]["networks"])
    for part in ("engine", "memory", "earned", "training_steps", "noise"):
        assert same(low[part], fresh["low"][part]), part
    assert theirs["training_steps"] > 0
    assert same(state["top"], fresh["top"])
    manifest = manifest_of(folder)
    checkpoint = find_checkpoint(trained / "checkpoints")
    entry = manifest["loaded"]["low"]
    assert (entry["checkpoint"], entry["level"]) == (str(checkpoint), "low")
    assert "networks/actor/target/torso.middleware.0.weight" in entry["taken"]
    assert entry["left"] == {}


def test_load_on_policy_level_has_filters_and_the_critics_scale(trained, tmp_path):
    """Here a level of another name, from a checkpoint that is named."""
    checkpoint = find_checkpoint(trained / "checkpoints")
    params = graph().parameters
    top, low = params.levels
    levels = (replace(top, name="boss", load=f"{checkpoint}:top"), low)
    state, _ = states_at_start(HRLGraphManager(replace(params, levels=levels)), tmp_path)
    theirs = saved_agent(trained, "top")
    for part in ("network", "filters", "returns"):
        assert same(state["boss"][part], theirs[part]), part
    assert theirs["filters"]["input"]["observation"]
    assert state["boss"]["memory"]["length"] == 0
    assert (state["boss"]["training_steps"], theirs["training_steps"] > 0) == (0, True)


def test_load_path_with_a_colon_is_a_path(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "walk:low")
    state, _ = states_at_start(graph(load=str(tmp_path / "walk:low")), tmp_path / "b")
    assert same(state["low"]["networks"], saved_agent(trained, "low")["networks"])


def test_load_frozen_level_is_unchanged(trained, tmp_path):
    folder = run(graph(load=str(trained), frozen=True), tmp_path)
    ours, theirs = saved_agent(folder.path, "low"), saved_agent(trained, "low")
    assert same(ours["networks"], theirs["networks"])
    assert saved_agent(folder.path, "top")["training_steps"] > 0


def test_resume_loaded_level_keeps_what_it_has_learned_since(trained, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    folder = run(graph(load=str(other)), tmp_path / "b")
    shutil.rmtree(other)  # it is not asked for again
    learned = saved_agent(folder.path, "low")
    resume_experiment(folder.path, steps=EnvironmentSteps(124), settings=QUIET)
    straight = run(graph(load=str(trained), steps=124), tmp_path / "c")
    assert same(saved_agent(folder.path, "low"), saved_agent(straight.path, "low"))
    assert not same(saved_agent(folder.path, "low")["networks"], learned["networks"])


def test_resume_without_a_checkpoint_loads_the_same_again(trained, tmp_path):
    """From the checkpoint it loaded then, although that run has gone on since."""
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    folder = run(graph(load=str(other)), tmp_path / "b")
    expected = saved_agent(folder.path, "low")
    (first,) = (other / "checkpoints").glob("step_*")
    later = first.with_name("step_999999")
    shutil.copytree(first, later)
    (later / "checkpoint.json").write_text("broken")
    (other / "checkpoints" / "last").write_text('{"checkpoint": "step_999999"}')
    shutil.rmtree(folder.checkpoints)
    (folder.path / "log.jsonl").unlink()
    resume_experiment(folder.path, settings=QUIET)
    assert same(saved_agent(folder.path, "low"), expected)


def test_evaluate_untrained_plays_the_loaded_level(trained):
    def reward(graph_manager):
        record = evaluate_untrained(graph_manager, TASK, episodes=EnvironmentEpisodes(2))
        return record.scalars["evaluation/reward_mean"]

    assert reward(graph(load=str(trained))) != reward(graph())


@pytest.mark.parametrize(
    "drive",
    [
        lambda manager: next(manager.improve()),
        lambda manager: manager.run(),
        lambda manager: next(manager.heatup(EnvironmentSteps(4))),
        lambda manager: next(manager.train_and_act(EnvironmentSteps(4))),
        lambda manager: manager.evaluate(EnvironmentEpisodes(1)),
        lambda manager: manager.evaluations.policies(),
    ],
    ids=["improve", "run", "heatup", "train_and_act", "evaluate", "policies"],
)
def test_unloaded_level_is_refused_by_every_method(trained, drive):
    with graph(load=str(trained), frozen=True) as manager:
        manager.create_graph(TASK)
        assert f"to be loaded from {trained}" in description.described(manager)
        with pytest.raises(ConfigurationError):
            drive(manager)
        load_levels(manager)
        assert f" loaded from {trained}" in description.described(manager)
        assert "to be loaded" not in description.described(manager)
        drive(manager)
        loaded = manager.state_dict()["agents"]["low"]["networks"]
        assert same(loaded, saved_agent(trained, "low")["networks"])


def test_load_state_dict_restored_graph_is_not_loaded_again(trained):
    with graph(load=str(trained)) as first, graph(load=str(trained)) as second:
        for manager in (first, second):
            manager.create_graph(TASK)
        load_levels(first)
        first.run()
        second.load_state_dict(first.state_dict())
        assert not second.graph.unloaded
        assert_same_state(second.state_dict()["agents"], first.state_dict()["agents"])


class ForgottenAgent(PPOAgent):
    def state_dict(self):
        return {**super().state_dict(), "encoder": 1.0}


@parameter_class
class ForgottenParameters(PPOAgentParameters):
    def build(self, context):
        return ForgottenAgent(self, context)


def forgotten(agent):
    """Parameters of an agent whose policy may lack state, with the values of another's."""
    values = {each.name: getattr(agent, each.name) for each in fields(PPOAgentParameters)}
    return ForgottenParameters(**values)


def test_load_path_with_a_home_directory(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(trained.parent))
    found, _ = states_at_start(graph(load=f"~/{trained.name}:low"), tmp_path)
    assert same(found["low"]["networks"], saved_agent(trained, "low")["networks"])
    assert Path(f"~/{trained.name}").exists() is False


@parameter_class
class Unturned:
    """The symmetry of what looks like nothing but itself."""

    def build(self, context):
        return AsItIs(context.spaces.observation)


class AsItIs:
    description = "Unturned()"

    def __init__(self, observation_space):
        self.observation_space = observation_space

    def canonical(self, observation):
        return observation

    def restored(self, action, observation):
        return action


def flat(obs_filter=NORMALISED, *, middleware=(64, 64), symmetry=None, **more):
    """One agent pushes a point mass; its observation and its network may be others."""
    network = ActorCriticParameters(torso=TorsoParameters(middleware=middleware))
    agent = ppo(input_filter=obs_filter, network=network, symmetry=symmetry)
    return experiment(agent, num_envs=4, training=120, **more)


@pytest.fixture(scope="module")
def flat_run(tmp_path_factory):
    return run(flat(), tmp_path_factory.mktemp("flat")).path


def test_load_flat_agent_starts_from_another_run(flat_run, tmp_path):
    state, folder = states_at_start(flat(load=str(flat_run)), tmp_path)
    theirs = saved_agent(flat_run, "main")
    for part in ("network", "filters", "returns"):
        assert same(state["main"][part], theirs[part]), part
    assert state["main"]["memory"]["length"] == 0
    loaded = manifest_of(folder)["loaded"]
    count = len(loaded["main"]["taken"])
    assert loading_report(loaded) == [
        f"level 'main': all {count} parts of 'main' in {find_checkpoint(flat_run / 'checkpoints')}"
    ]


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"sha256": "0" * 64}, "has been changed since"), ({"checkpoint": "gone"}, "not there any")],
)
def test_load_of_a_run_that_starts_again_takes_the_recorded_checkpoint(
    flat_run, tmp_path, changes, what
):
    manifest = manifest_of(run(flat(load=str(flat_run)), tmp_path))
    manager = flat(load=str(flat_run))
    with live_graph(manager, Runtime(device="cpu")):
        assert load_levels(manager, manifest) == manifest["loaded"]
        manifest["loaded"]["main"] |= changes
        with pytest.raises(ConfigurationError, match=what):
            load_levels(manager, manifest)


def test_load_reads_no_memory(trained, tmp_path):
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    entries = list(find_checkpoint(other / "checkpoints").glob("rows_*.bin"))
    assert entries
    for file in entries:
        file.unlink()
    state, _ = states_at_start(graph(load=str(other)), tmp_path / "b")
    assert same(state["low"]["networks"], saved_agent(trained, "low")["networks"])


def test_load_partly_takes_the_parts_of_another_network_that_fit(flat_run, tmp_path):
    other = flat(middleware=(64, 32), load=str(flat_run), load_partly=True)
    state, folder = states_at_start(other, tmp_path)
    mine, theirs = (
        each["network"]["online"] for each in (state["main"], saved_agent(flat_run, "main"))
    )
    loaded = manifest_of(folder)["loaded"]
    taken, left = loaded["main"]["taken"], loaded["main"]["left"]
    for name, value in mine.items():
        fits = value.shape == theirs[name].shape
        assert same(value, theirs[name]) == fits or not value.any()
        assert (f"network/online/{name}" in taken) == fits
        assert (f"network/online/{name}" in left) != fits
    reason = left["network/online/actor_torso.middleware.2.weight"]
    assert reason == "float32 (64, 64) there, float32 (32, 64) here"
    report = loading_report(loaded)
    assert f"{len(taken)} of {len(taken) + len(left)} parts" in report[0]
    assert len(report) == 1 + len(left)


def test_load_partly_statistics_are_whole_or_left(flat_run, tmp_path):
    """A mean without its count means nothing; a filter that is not there stays as it is."""
    unfiltered = run(flat(None), tmp_path / "a").path
    state, folder = states_at_start(flat(load=str(unfiltered), load_partly=True), tmp_path / "b")
    left = manifest_of(folder)["loaded"]["main"]["left"]
    assert list(left.values()) == ["not there"]
    fresh, _ = states_at_start(flat(), tmp_path / "c")
    assert same(state["main"]["filters"], fresh["main"]["filters"])
    assert same(state["main"]["network"], saved_agent(unfiltered, "main")["network"])
    _, folder = states_at_start(flat(None, load=str(flat_run), load_partly=True), tmp_path / "d")
    left = manifest_of(folder)["loaded"]["main"]["left"]
    assert set(left.values()) == {"not here"}


def test_load_from_the_command_line_is_reported_once(flat_run, tmp_path, capsys):
    preset = tmp_path / "push.py"
    preset.write_text(PUSH)
    words = ["--plain", "-c", "--no_tensorboard", "-ep", str(tmp_path / "e")]
    change = f"load={flat_run}; agent.optimizer.learning_rate=1e-5"
    assert main(["-p", str(preset), "-cp", change, *words]) == 0
    said = capsys.readouterr().out
    assert said.count("loaded:") == 1
    assert re.search(r"loaded:     level 'main': all \d+ parts of 'main' in .*step_\d+", said)
    (folder,) = (tmp_path / "e").glob("*/*/manifest.json")
    assert main(["-crd", str(folder.parent), "--steps", "80", *words[:3]]) == 0
    assert "loaded:" not in capsys.readouterr().out
    assert main(["-p", str(preset), "-cp", f"load={flat_run}:lower", *words]) == 2
    assert "unknown level 'lower' there" in capsys.readouterr().err


PUSH = """
from coach_rl import (
    BasicGraphParameters, BasicRLGraphManager, EnvironmentEpisodes, EnvironmentSteps, InputFilter,
    ObservationNormalizationFilter, PointMassParameters, PPOAgentParameters, PPOAlgorithmParameters,
    ScheduleParameters,
)

def graph_manager():
    algorithm = PPOAlgorithmParameters(
        rollout=EnvironmentSteps(16), epochs=1, minibatch=8, scale_returns=True
    )
    seen = InputFilter(observation={"observation": (ObservationNormalizationFilter(),)})
    return BasicRLGraphManager(BasicGraphParameters(
        agent=PPOAgentParameters(algorithm=algorithm, input_filter=seen),
        environment=PointMassParameters(),
        schedule=ScheduleParameters(
            training=EnvironmentSteps(40), evaluation_episodes=EnvironmentEpisodes(1)
        ),
    ))
"""


OFFSETS = replace(PLACES, relative=True, reach=(0.5, 0.5), observed="relative")


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    """A run whose sub-goals are displacements."""
    return run(graph(goal_space=OFFSETS), tmp_path_factory.mktemp("ways")).path


def loaded_lines(source, goals, level="low", **of_low):
    """What is said where a level is loaded from a run into a stack with these goals."""
    params = graph(goal_space=goals, **of_low).parameters
    name = f"{source}:{level}"
    levels = tuple(
        replace(each, load=name) if number == ("top", "low").index(level) else each
        for number, each in enumerate(params.levels)
    )
    with (
        HRLGraphManager(replace(params, levels=levels)) as manager,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        manager.create_graph(TASK)
        load_levels(manager)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("level", "changes", "message"),
    [
        ("low", {"observed": "absolute"}, "GoalSpace.observed of its goals: relative there, abs"),
        ("top", {"relative": False, "reach": None}, "relative of the goals of level 1 below: True"),
    ],
)
@pytest.mark.parametrize("partly", [False, True])
def test_load_goals_of_another_kind_is_refused(ways, level, changes, message, partly):
    more = {"load_partly": partly} if level == "low" else {}
    with pytest.raises(ConfigurationError) as raised:
        loaded_lines(ways, replace(OFFSETS, **changes), level, **more)
    assert str(raised.value).startswith(f"level '{level}' cannot be loaded from {ways}")
    assert message in str(raised.value)


def test_load_flat_agent_of_environments_goals_below_relative_ones_is_refused(tmp_path):
    params = graph().parameters
    world = GoalPointMassParameters()
    source = experiment(ddpg(), world, num_envs=4, training=40)
    path = run(source, tmp_path).path
    goals = replace(OFFSETS, key="achieved_goal", elements=None)
    top, low = params.levels
    levels = (top, replace(low, goal_space=goals, load=f"{path}:main"))
    with HRLGraphManager(replace(params, levels=levels, environment=world)) as manager:
        manager.create_graph(TASK)
        with pytest.raises(ConfigurationError, match="absolute there, relative here"):
            load_levels(manager)


@pytest.mark.parametrize(
    ("level", "changes", "message"),
    [
        ("top", {"reach": (0.5, 1.0)}, "bounds of the goals of level 1 below: ([-0.5, -0.5], "),
        ("top", {"elements": (1, 0)}, "elements of the goals of level 1 below: (0, 1) there, (1,"),
        ("low", {"elements": (2, 3)}, "elements of its goals: (0, 1) there, (2, 3) here"),
        ("low", {"reach": None}, "bounds of its goals: ([-0.5, -0.5], [0.5, 0.5]) there, ([-2.0,"),
    ],
)
def test_load_goals_of_other_bounds_warns_in_one_line(ways, level, changes, message):
    (line,) = loaded_lines(ways, replace(OFFSETS, **changes), level)
    assert line.startswith(f"level '{level}': its agent was trained with other goals or actions")
    assert message in line
    assert "\n" not in line


@pytest.mark.parametrize("level", ["low", "top"])
@pytest.mark.parametrize(
    "goals",
    [
        OFFSETS,
        replace(OFFSETS, threshold=(0.9, 0.1), reward="dense", reached_within="ball"),
        replace(OFFSETS, low=tuple(np.full(2, -1.0)), reach=tuple(np.full(2, 0.5, np.float32))),
        replace(OFFSETS, low=(-1, -1), high=(1, 1), angles=()),
    ],
    ids=["same", "other rewards", "numpy", "integers"],
)
def test_load_goals_of_equal_meaning_is_silent(ways, goals, level):
    assert loaded_lines(ways, goals, level, name="legs" if level == "top" else "low") == []


def test_load_goals_that_are_seen_the_same_is_silent_whatever_is_sent(trained):
    assert loaded_lines(trained, replace(PLACES, relative=True, reach=(0.5, 0.5))) == []


@pytest.mark.parametrize("level", ["low", "top"])
def test_load_goals_for_options_and_options_for_goals_is_refused(ways, level, tmp_path):
    options = OptionSpace(count=2)
    source = run(graph(ppo(), goal_space=options), tmp_path).path
    for path, goals, low in ((source, OFFSETS, ppo()), (ways, options, ppo())):
        with pytest.raises(ConfigurationError, match=r"GoalSpace.* options ") as raised:
            loaded_lines(path, goals, level, low=low)
        assert "trained with goals that mean something else" in str(raised.value)
    assert loaded_lines(source, options, level, low=ppo()) == []


def test_meaning_whole_widths_and_elements_are_those_left_out():
    whole = GoalSpace(low=(-1.0, 0.0), high=(1.0, 3.0), threshold=(0.2, 0.2), relative=True)
    spelled = replace(whole, reach=(2.0, 3.0), elements=(0, 1))
    observed = spaces.Dict({"observation": spaces.Box(-1.0, 1.0, (2,))})
    box = EnvironmentSpaces(observation=observed, action=spaces.Box(-1.0, 1.0, (2,)))
    wider = replace(box, action=spaces.Box(-2.0, 2.0, (2,)))
    meanings = [
        Meaning(graph(goal_space=goals).parameters.levels, LevelChain(), each)
        for goals, each in ((whole, box), (spelled, box), (whole, wider))
    ]
    for name in ("top", "low"):
        meanings[0].require_same(name, meanings[1], name)
    meanings[0].require_same("top", meanings[2], "top")  # acts in goals alone
    with pytest.warns(CoachWarning, match="action space: Box.* there, Box.* here"):
        meanings[0].require_same("low", meanings[2], "low")


def test_fork_with_goals_of_another_kind_is_refused(ways):
    changes = {"levels.1.goal_space.observed": "absolute"}
    with pytest.raises(ConfigurationError, match="of level 'low' was trained with goals that mean"):
        fork_experiment(ways, name="other", overrides=changes, steps=EnvironmentSteps(140))
