"""The profile of a run: its tree and its files, and that it changes no numbers."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from coach_rl import BackgroundEvaluation, VideoParameters
from coach_rl.core.errors import CoachWarning
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.mujoco import batch
from coach_rl.extensions.looking.profile import ProfileParameters, RunProfile
from coach_rl.extensions.looking.profiler import Profile
from coach_rl.presets.CartPole_PPO import Panel as CartPolePanel
from coach_rl.presets.CartPole_PPO import graph_manager as cart_pole
from coach_rl.presets.Pendulum_HAC import Panel as PendulumPanel
from coach_rl.presets.Pendulum_HAC import graph_manager as pendulum
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import RunSettings
from tests.extensions.films.easel import Easel
from tests.extensions.films.test_videos import FILMED
from tests.small_runs import log_of, preset

PLAIN = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(1))
SETTINGS = replace(PLAIN, parts=(ProfileParameters(),))


def run(root, manager, settings=SETTINGS):
    task = Runtime(seed=1, device="cpu")
    return run_experiment(manager, task, name="x", root=root, settings=settings)


def paths(node, above=""):
    """Every node of a tree as in profile.json, by its path."""
    path = f"{above}/{node['name']}".removeprefix("/run/")
    found = {path: node}
    for child in node["children"]:
        found |= paths(child, path if above or path != "/run" else "/run")
    return found


@pytest.fixture(scope="module")
def two_levels(tmp_path_factory):
    """A profiled run of two levels, and its profile.json by path."""
    manager = pendulum(PendulumPanel(steps=1_400))
    parameters = manager.parameters
    schedule = replace(parameters.schedule, evaluation_episodes=EnvironmentEpisodes(1))
    manager = type(manager)(replace(parameters, schedule=schedule))
    result = run(tmp_path_factory.mktemp("runs"), manager)
    document = json.loads((result.folder.path / "profile.json").read_text())
    return SimpleNamespace(
        manager=manager, result=result, document=document, nodes=paths(document["tree"])
    )


def test_profile_tree_of_two_levels(two_levels):
    nodes, num_envs = two_levels.nodes, two_levels.manager.parameters.num_envs
    ticks = two_levels.result.environment_steps // num_envs
    assert nodes["tick"]["calls"] == nodes["tick/environment"]["calls"] == ticks
    assert nodes["tick/low/decide/act"]["calls"] == nodes["tick/low/process/observe"]["calls"]
    assert nodes["tick/low/train"]["calls"] == nodes["tick/top/train"]["calls"] == ticks
    assert nodes["tick/low"]["calls"] is None
    assert 0 < nodes["tick/top/decide/act"]["calls"] < ticks
    updates = nodes["tick/low/train/update"]["calls"]
    assert nodes["tick/low/train/sample"]["calls"] == updates > 0
    assert nodes["tick/low/train/update/sync"]["calls"] == 2 * updates  # actor and critic
    assert nodes["evaluation/low/decide/act"]["calls"] > 0
    assert {"logging", "logging/log.jsonl", "checkpoint", "evaluation/environment"} <= set(nodes)


def test_profile_inclusive_times_add_up(two_levels):
    for node in two_levels.nodes.values():
        inside = sum(child["inclusive_seconds"] for child in node["children"])
        assert node["inclusive_seconds"] == pytest.approx(inside + node["exclusive_seconds"])
        assert node["exclusive_seconds"] >= -1e-9
    whole = two_levels.document["tree"]["inclusive_seconds"]
    assert sum(two_levels.document["parts"].values()) == pytest.approx(whole)
    assert two_levels.document["tree"]["exclusive_seconds"] < 0.2 * whole  # little is unexplained


def test_profile_of_the_result_is_the_one_written(two_levels):
    profile = two_levels.result.parts["profile"].value
    assert isinstance(profile, Profile)
    assert profile.parts() == pytest.approx(two_levels.document["parts"])
    assert not profile.waits_for_gpu
    trace = json.loads((two_levels.result.folder.path / "trace.json").read_text())
    assert {"tick", "act", "update"} <= {event["name"] for event in trace["traceEvents"]}


def test_profile_changes_no_numbers(tmp_path):
    manager = cart_pole(CartPolePanel(steps=1_024))
    profiled = run(tmp_path / "a", manager)
    plain = run(tmp_path / "b", cart_pole(CartPolePanel(steps=1_024)), PLAIN)
    assert not plain.parts
    assert not list(plain.folder.path.glob("profile*"))

    assert log_of(profiled, without=["progress"]) == log_of(plain, without=["progress"])
    assert not {"evaluate", "scores_of"} & set(vars(manager))


def test_profile_of_a_resumed_run_keeps_the_earlier_one(tmp_path):
    first = run(tmp_path, cart_pole(CartPolePanel(steps=512)))
    folder = first.folder.path
    then = (folder / "profile.json").read_bytes(), (folder / "trace.json").read_bytes()
    resumed = resume_experiment(folder, steps=EnvironmentSteps(1_024), settings=SETTINGS)
    assert then == (
        (folder / "profile.1.json").read_bytes(),
        (folder / "trace.1.json").read_bytes(),
    )
    calls = [
        result.parts["profile"].value.root.children["tick"].calls for result in (first, resumed)
    ]
    assert sum(calls) * 8 == resumed.environment_steps


def test_profile_that_cannot_be_written_is_an_incident(tmp_path, monkeypatch):
    def full(profile, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Profile, "write_trace", full)
    with pytest.warns(CoachWarning):
        result = run(tmp_path, cart_pole(CartPolePanel(steps=512)))
    assert result.summary is not None
    assert result.parts["profile"].value is not None
    assert "profiles that could not be written: 1" in result.incidents


def test_profile_on_a_gpu_waits_for_every_call(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    graph = SimpleNamespace(
        runtime=Runtime(device="cuda:1"), stacks=(), agents={}, watchers=(), tick=lambda: None
    )
    manager = SimpleNamespace(graph=graph, evaluations=SimpleNamespace(play=lambda: None))
    timed = RunProfile(manager)
    waited.clear()
    graph.tick()
    assert waited == ["cuda:1", "cuda:1"]
    assert timed.profile().waits_for_gpu


@pytest.mark.slow
def test_profile_background_evaluation_has_its_own(tmp_path, served_evaluations):
    settings = replace(SETTINGS, parts=(ProfileParameters(), BackgroundEvaluation()))
    result = run(tmp_path, cart_pole(CartPolePanel(steps=512)), settings)
    document = json.loads((result.folder.path / "profile_evaluation.json").read_text())
    nodes = paths(document["tree"])
    assert document["process"] == "evaluation"
    assert nodes["evaluation"]["calls"] == 1
    assert "tick" not in nodes


def test_profile_of_a_filmed_run_has_evaluations_drawing_and_encoding(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "FrameRenderer", Easel)
    parts = (VideoParameters(frame_skip=2), ProfileParameters())
    settings = replace(PLAIN, final_episodes=EnvironmentEpisodes(2), parts=parts)
    result = run(tmp_path, preset(FILMED).build(), settings)
    tree = json.loads((result.folder.path / "profile.json").read_text())["tree"]
    calls = {path: node["calls"] for path, node in paths(tree).items()}
    assert calls["evaluation"] == 3  # two while training, and the final one
    assert sum(n for path, n in calls.items() if path.endswith("encode")) == 3
    drawn = [path for path in calls if path.endswith("/draw") and calls[path]]
    assert drawn == ["evaluation/film/draw"]
    assert calls[drawn[0]] > 10  # one frame in two steps of at least 20
