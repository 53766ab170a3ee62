"""Exported policies as teachers: labels, resumes in mid-episode, and what is refused."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.extensions.imitation.dagger import TEACHER_ACTION
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.decisions import outcome, request
from tests.extensions.imitation.test_dagger import (
    CART_POLE,
    MAZE,
    TRAIN,
    acted,
    observations,
    student,
)

pytest.importorskip("onnxruntime")

RECURRENT = "recurrent"
"""The exported policy of a run with a recurrent layer."""


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Exported policies by the name of their run: shipped ones, and one with a recurrent layer."""
    folder = tmp_path_factory.mktemp("exported")
    torso = rl.TorsoParameters(embedder=(), recurrence=rl.GRU(size=8))
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(32), minibatch=32, sequence=8
        ),
        network=rl.ActorCriticParameters(torso=torso),
        update_mode="eager",
    )
    experiment = rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=agent,
            environment=rl.GymnasiumParameters(level="CartPole-v1"),
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(128), evaluation_interval=None
            ),
        )
    )
    run = rl.run_experiment(experiment, name="recurrent", root=folder).folder.path
    names = {CART_POLE: "cartpole", MAZE: "maze", str(run): RECURRENT}
    for source, name in names.items():
        rl.export(Path(source), folder / f"{name}.zip")
    files = {CART_POLE: "cartpole", MAZE: "maze", RECURRENT: RECURRENT}
    return {key: str(folder / f"{name}.zip") for key, name in files.items()} | {"run": str(run)}


@pytest.mark.parametrize("run", [CART_POLE, RECURRENT])
def test_labels_are_those_of_the_run_that_was_exported(run, archives):
    seen = observations(12)
    labels = []
    for teacher in (archives["run"] if run == RECURRENT else run, archives[run]):
        agent = student(teacher)
        rows = agent.new_rows(2, 0)
        first = acted(agent, rows, seen[:6])[1]
        labels.append(np.concatenate([first, acted(agent, rows, seen[5:])[1]]))  # an episode more
    np.testing.assert_array_equal(*labels)
    assert len(np.unique(labels[0])) > 1


def test_saved_rows_continue_in_mid_episode(archives):
    seen = observations(40)
    agent = student(archives[RECURRENT])
    rows = agent.new_rows(2, 0)
    acted(agent, rows, seen[:4])
    saved = rows.state_dict()
    wanted = acted(agent, rows, seen[3:], is_first=False)[1]
    again = student(archives[RECURRENT])
    loaded = again.new_rows(2, 0)
    loaded.load_state_dict(saved)
    assert_same_state(loaded.state_dict(), saved)
    np.testing.assert_array_equal(acted(again, loaded, seen[3:], is_first=False)[1], wanted)
    # The hidden state matters, or the test could not fail.
    fresh = again.new_rows(2, 0)
    assert not np.array_equal(acted(again, fresh, seen[3:])[1], wanted)


def test_rows_that_never_decided_are_saved_too(archives):
    teacher = student(archives[RECURRENT]).teacher
    rows = teacher.new_rows(2)
    again = teacher.new_rows(2)
    again.load_state_dict(rows.state_dict())
    seen = request(observations(1)[0], starts=True)
    np.testing.assert_array_equal(teacher.actions(again, seen), teacher.actions(rows, seen))


def test_rows_that_decide_alone_are_refused(archives):
    agent = student(archives[CART_POLE])
    teacher = agent.teacher
    seen = request(observations(1)[0], starts=True)
    with pytest.raises(ConfigurationError, match=r"acts in all rows at once.* in 1 of 2"):
        teacher.actions(teacher.new_rows(2), seen.rows_of(np.array([1])))


def test_recorded_teacher_is_the_file_and_its_checksum(archives, tmp_path):
    file = tmp_path / "mine.zip"
    file.write_bytes(Path(archives[CART_POLE]).read_bytes())
    recorded = rl.TeacherParameters(run=str(file)).recorded()
    assert recorded.taken.checkpoint == str(file)
    decided(student(teacher=recorded))
    file.write_bytes(Path(archives[MAZE]).read_bytes())
    with pytest.raises(ConfigurationError, match=r"mine\.zip, with which the run began, has been"):
        decided(student(teacher=recorded))
    file.unlink()
    with pytest.raises(ConfigurationError, match=r"mine\.zip, with which .* not there any more"):
        decided(student(teacher=recorded))
    with pytest.raises(ConfigurationError, match=r"there is no exported policy .*mine\.zip"):
        rl.TeacherParameters(run=str(file)).recorded()


def decided(agent):
    """The teacher's labels of one decision."""
    return acted(agent, agent.new_rows(2, 0), observations(2))[1]


def damaged(archives, folder):
    file = folder / "damaged.zip"
    file.write_bytes(Path(archives[CART_POLE]).read_bytes()[:900])
    return {"run": str(file)}


REFUSED = {
    "damaged": (ConfigurationError, "damaged.zip cannot be loaded", damaged),
    "other observations": (
        SpaceError,
        "observes 'observation' in .*let the level show it",
        lambda archives, _: {"run": archives[MAZE], "shown": CART_POLE},
    ),
    "other actions": (
        SpaceError,
        "acts in .*, and this level in Discrete",
        lambda archives, _: {"run": archives[CART_POLE], "action": spaces.Discrete(3)},
    ),
    "a distribution": (
        SpaceError,
        "no distribution of PPO's kind; use target='action'",
        lambda archives, _: {"run": archives[CART_POLE], "target": "distribution"},
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_teacher_that_does_not_fit_is_refused(case, archives, tmp_path):
    error, message, changes = REFUSED[case]
    with pytest.raises(error, match=message):
        decided(student(**changes(archives, tmp_path)))


def test_run_with_an_exported_teacher_stores_its_labels(archives):
    agent = student(archives[CART_POLE])
    rows = agent.new_rows(2, 0)
    seen = observations(3)
    for step, (before, after) in enumerate(pairwise(seen)):
        agent.act(rows, request(before, starts=step == 0), TRAIN)
        agent.observe(rows, outcome(after), TRAIN)
    stored = agent.memory.sample(2).extras[TEACHER_ACTION]
    assert set(np.unique(stored)) <= {0, 1}


def test_missing_package_is_named(archives, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigurationError, match=r"needs onnxruntime, .*\[export\]"):
        decided(student(archives[CART_POLE]))
