"""Callbacks see every record of a run, add records, and end it; they never change its numbers."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coach_rl.core.clock import Phase
from coach_rl.core.errors import CallbackError, CoachWarning, ConfigurationError
from coach_rl.core.parts import wrap_method
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers import BasicRLGraphManager
from tests.agents.resuming import after, assert_resumes
from tests.graph_managers.small_runs import parameters

TASK = Runtime(seed=1, device="cpu")


class Counting:
    """Counts evaluations, and says so."""

    def __init__(self):
        self.count = 0

    def __call__(self, record, run):
        if record.kind == "evaluation":
            self.count += 1
            yield run.note({"own/count": self.count})

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class Watching:
    """Observes the simulators' rewards, and adds a record of those of each training tick."""

    def __init__(self):
        self.closed = False

    def __str__(self):
        return "rewards"

    def begin(self, run):
        simulators = run.graph.training.simulators
        receive = simulators.recv

        def recv():
            answer = receive()
            if run.graph.clock.phase is Phase.TRAIN and len(answer):
                total = {"own/total": float(answer.reward.sum())}
                run.progress.added.append(partial(run.note, total))
            return answer

        wrap_method(simulators, "recv", recv)

    def __call__(self, record, run):
        """Nothing is added to a record."""

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        """Nothing is kept."""

    def close(self):
        self.closed = True


def doubled(record, run):
    if "own/count" in record.scalars:
        return run.note(
            {"own/doubled": 2 * record.scalars["own/count"]}, text="twice", level="main"
        )
    return None


def manager_with(*callbacks, **changed):
    manager = BasicRLGraphManager(replace(parameters(), **changed))
    manager.create_graph(TASK, callbacks=callbacks)
    return manager


def said(records):
    return [(r.kind, r.environment_steps, r.scalars) for r in records if r.kind != "progress"]


def test_added_records_follow_theirs_and_are_seen_by_later_callbacks():
    manager = manager_with(Counting(), doubled)
    records = list(manager.improve())
    manager.close()
    kinds = [r.kind for r in records]
    first = kinds.index("evaluation")
    assert kinds[first : first + 3] == ["evaluation", "note", "note"]
    count, twice = records[first + 1 : first + 3]
    assert (count.scalars, count.environment_steps) == (
        {"own/count": 1.0},
        records[first].environment_steps,
    )
    assert (twice.scalars, twice.text, twice.level) == ({"own/doubled": 2.0}, "twice", "main")
    earlier = manager_with(doubled, Counting())
    assert not any("own/doubled" in r.scalars for r in earlier.improve()), "it comes too early"
    earlier.close()


def test_records_added_in_a_tick_are_yielded_with_its_counters():
    manager = manager_with(Watching())
    with manager:
        ticks = list(manager.train_and_act(EnvironmentSteps(40)))
        assert manager.state_dict()["callbacks"] == {"rewards": {}}
    notes = [each for each in ticks if each.kind == "note"]
    assert [each.environment_steps for each in notes] == [*range(4, 44, 4)]


class Refuses(Watching):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def begin(self, run):
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ConfigurationError("no such point"), ConfigurationError, "no such point"),
        (KeyError("x"), CallbackError, "rewards failed at the beginning: KeyError: 'x'"),
    ],
)
def test_callback_that_fails_at_the_beginning_closes_the_graph(error, kind, message):
    refusing = Refuses(error)
    manager = BasicRLGraphManager(parameters())
    with pytest.raises(kind, match=re.escape(message)):
        manager.create_graph(TASK, callbacks=(refusing,))
    assert refusing.closed
    manager.create_graph(TASK)  # nothing is left of the first
    manager.close()


def test_callbacks_leave_the_numbers_of_a_run_as_they_are():
    plain, followed = manager_with(), manager_with(Counting())
    records, others = list(plain.improve()), list(followed.improve())
    assert said(records) == said(r for r in others if r.kind != "note")
    state = followed.state_dict()
    assert state.pop("callbacks") == {"Counting": {"count": 4}}
    for each in (state, expected := plain.state_dict()):
        each.pop("progress")
    assert_same_state(state, expected)
    plain.close()
    followed.close()


def test_a_resumed_callback_continues_where_it_was(tmp_path):
    def build(seed):
        return manager_with(Counting(), doubled)

    assert_resumes(build, tmp_path, after(140), after(270), kinds=("note", "evaluation"))


def test_a_stop_ends_training_with_an_evaluation_and_its_reason():
    def until_20(record, run):
        if record.environment_steps >= 20 and record.kind == "episode":
            run.stop("twenty are enough")
            run.stop("too late")

    manager = manager_with(until_20)
    records = list(manager.improve())
    assert manager.progress.ending == "twenty are enough"
    assert records[-1].kind == "evaluation"
    steps = manager.graph.clock.environment_steps
    assert records[-1].environment_steps == steps == 200
    state = manager.state_dict()
    manager.close()
    resumed = manager_with(until_20)
    resumed.load_state_dict(state)
    assert (resumed.progress.ending, list(resumed.improve())) == ("twenty are enough", [])
    resumed.close()
    schedule = replace(parameters().schedule, training=1_000)
    longer = manager_with(schedule=schedule)
    longer.load_state_dict(state)
    assert longer.progress.ending is None, "another length was asked for"
    longer.close()


def test_callbacks_state_of_missing_callback_warns():
    manager = manager_with(Counting(), Counting())
    state = manager.state_dict()
    manager.close()
    assert set(state["callbacks"]) == {"Counting", "Counting 2"}
    fewer = manager_with(Counting())
    with pytest.warns(CoachWarning):
        fewer.load_state_dict(state)
    fewer.close()


def test_note_names_are_printable():
    def noted(record, run):
        if record.kind == "evaluation":
            yield run.note({"a\x1b[2J": 1.0}, level="l\u202e", agent="\ud800", arrays={"b\n": [1]})

    manager = manager_with(noted)
    (note, *_) = (each for each in manager.improve() if each.kind == "note")
    manager.close()
    names = (*note.scalars, *note.arrays, note.level, note.agent)
    assert names == ("a\\x1b[2J", "b\\n", "l\\u202e", "\\ud800")


@pytest.mark.parametrize(
    "image", [np.zeros((2, 3)), np.zeros((2, 3, 4), np.uint8), np.zeros(3, np.uint8)]
)
def test_note_with_another_picture_is_refused(image):
    manager = manager_with(lambda record, run: run.note(images={"own/map": image}))
    with pytest.raises(CallbackError, match=r"'own/map' of a note must be uint8 \[H, W\] or"):
        list(manager.improve())
    manager.close()


class LostSignal(Exception):
    """An error of a device, with the name of a signal that is none of the process."""

    signal = "antenna"


@pytest.mark.parametrize(
    "error", [RuntimeError(), SystemExit(0), KeyboardInterrupt(), LostSignal()]
)
def test_callback_that_fails_to_close_is_a_warning(error):
    class Broken(Counting):
        def close(self):
            raise error

    manager = manager_with(Broken())
    with pytest.warns(CoachWarning, match=f"Broken failed in close: {type(error).__name__}"):
        manager.close()
