"""Parts of a run: in their order, through every hook, by a class that the package doesn't know."""

import json
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    ParameterError,
    RunError,
)
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers import EvaluationWatcher
from coach_rl.graph_managers.evaluations import EvaluationRequest, Scores
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.sessions import (
    Audience,
    PartResult,
    RunContext,
    RunPart,
    RunPartParameters,
    RunResult,
    RunSettings,
    Written,
    evaluate_run,
    fork_experiment,
    resume_experiment,
    run_experiment,
)
from tests.refusals import check_refused
from tests.small_runs import (
    AtRecord,
    change_manifest,
    experiment,
    lines_of,
    log_of,
    manifest_of,
    ppo,
)

CALLS: list[str] = []
"""Calls of the parts below, in their order."""


class Counter(EvaluationWatcher):
    """Counts the steps of evaluations."""

    def __init__(self) -> None:
        self.evaluations = 0
        self.steps = 0

    def begin(self, stack: Any, due: Any) -> None:
        self.evaluations += 1

    def note_tick(self, answer: Any) -> None:
        self.steps += int(answer.duration.sum())


@parameter_class
class CountParameters(RunPartParameters):
    """Counts the steps of a run's evaluations, in a note after each."""

    name: ClassVar[str] = "count"

    is_refused: bool = False

    def check(self, settings: RunSettings) -> None:
        if self.is_refused:
            raise ConfigurationError("nothing can be counted here; leave it out")

    def build(self, settings: RunSettings) -> RunPart:
        return Count(self.name)


@parameter_class
class SecondCountParameters(CountParameters):
    name: ClassVar[str] = "second"


class Count(RunPart):
    """The part of a run that counts steps of evaluations."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counter = Counter()
        self.watchers = (self._counter,)

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        CALLS.append(f"open {self._name}")
        self._run = run
        try:
            yield
        finally:
            CALLS.append(f"close {self._name}")
            run.failures.note("counts", "the count", OSError("no room"))

    def follow(self, record: LogRecord) -> Iterable[LogRecord]:
        if record.kind in ("evaluation", "final_evaluation"):
            CALLS.append(f"follow {self._name}")
            yield self._run.record("note", {f"{self._name}/steps": float(self._counter.steps)})

    def evaluated(self, file: Path) -> Iterable[Written]:
        other = file.with_suffix(".count")
        other.write_text(f"{self._counter.steps}")
        yield Written(what="counted in", path=other)

    def result(self) -> PartResult:
        return PartResult(value=self._counter.steps)


@parameter_class
class AsideParameters(RunPartParameters):
    """Makes evaluations itself, beside training."""

    name: ClassVar[str] = "aside"

    def build(self, settings: RunSettings) -> RunPart:
        return Aside()


class Aside(RunPart):
    """An evaluator in the run's own process, which plays when it is polled."""

    makes_evaluations = True

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        self.evaluator = Plays(run)
        yield


class Plays:
    """An `Evaluator`."""

    def __init__(self, run: RunContext) -> None:
        self._other = experiment(ppo(64), **EXPERIMENT)
        self._other.create_graph(run.runtime, training=False)
        self._requests: list[EvaluationRequest] = []

    def submit(self, evaluation: EvaluationRequest) -> None:
        self._requests.append(evaluation)

    def has_answered(self, *, wait_seconds: float = 0.0) -> bool:
        return bool(wait_seconds)

    def answer(self) -> Scores:
        request = self._requests.pop(0)
        return self._other.evaluations.scores_of(request.policies, clock=request.clock)

    def forget(self) -> None:
        self._requests.clear()


EXPERIMENT = {"training": 192, "evaluation_interval": 64, "evaluation_episodes": 2, "num_envs": 4}
PLAIN = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(1))


def run(root: Path, *parts: RunPartParameters, **more: Any) -> RunResult:
    settings = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(1), parts=parts)
    manager = experiment(ppo(64), **EXPERIMENT)
    task = Runtime(seed=1, device="cpu")
    return run_experiment(manager, task, name="x", root=root, settings=settings, **more)


def without_notes(result: RunResult) -> list[dict[str, Any]]:
    return log_of(result, without=["note", "checkpoint", "progress"])


def test_parts_take_part_in_their_order_and_change_no_numbers(tmp_path: Path) -> None:
    CALLS.clear()
    with pytest.warns(UserWarning, match="cannot write the count"):
        counted = run(tmp_path / "a", CountParameters(), SecondCountParameters())
    assert CALLS[:2] == ["open count", "open second"]
    assert CALLS[2:-2] == ["follow count", "follow second"] * 4  # three evaluations, the final one
    assert CALLS[-2:] == ["close second", "close count"]
    assert "counts that could not be written: 2" in counted.incidents
    assert without_notes(counted) == without_notes(run(tmp_path / "b"))
    assert list(counted.parts) == ["count", "second"]
    assert counted.parts["count"].value == counted.parts["second"].value > 0


def test_records_of_a_part_follow_the_record_they_are_about(tmp_path: Path) -> None:
    with pytest.warns(CoachWarning):
        lines = lines_of(run(tmp_path, CountParameters()))
    for number, line in enumerate(lines):
        if line["kind"] in ("evaluation", "final_evaluation"):
            assert lines[number + 1]["kind"] == "note"
            assert lines[number + 1]["scalars"]["count/steps"] > 0


def test_part_is_closed_after_an_error(tmp_path: Path) -> None:
    class Broken:
        def write(self, record: LogRecord) -> None:
            if record.kind == "evaluation":
                raise RunError("broken")

        def close(self) -> None: ...

    CALLS.clear()
    with pytest.warns(CoachWarning), pytest.raises(RunError):
        run(tmp_path, CountParameters(), audience=Audience(sinks=(Broken(),)))
    assert CALLS[-1] == "close count"


def test_evaluate_run_with_a_part_writes_what_it_writes(tmp_path: Path) -> None:
    folder = run(tmp_path).folder.path
    written: list[Written] = []
    _, file = evaluate_run(
        folder,
        episodes=EnvironmentEpisodes(2),
        parts=[CountParameters()],
        on_written=written.append,
    )
    assert file is not None
    assert written == [Written(what="counted in", path=file.with_suffix(".count"))]
    assert int(written[0].path.read_text()) > 0


@pytest.mark.parametrize(
    ("parts", "kind", "message"),
    [
        ((CountParameters(), CountParameters()), ParameterError, "parts has 'count' twice"),
        ((CountParameters(is_refused=True),), ConfigurationError, "nothing can be counted here"),
        (
            (CountParameters(), AsideParameters()),
            ParameterError,
            "aside and count exclude each other",
        ),
    ],
)
def test_parts_that_cannot_take_part_error(
    parts: tuple[RunPartParameters, ...], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    check_refused(lambda: run(tmp_path, *parts), kind, message)
    assert not list(tmp_path.iterdir())


def test_evaluations_of_a_part_equal_those_of_the_run(tmp_path: Path) -> None:
    def by_step(result: RunResult) -> list[dict[str, Any]]:
        found = [line for line in without_notes(result) if line["kind"] != "checkpoint"]
        return sorted(found, key=lambda each: (each["environment_steps"], json.dumps(each)))

    assert by_step(run(tmp_path / "a", AsideParameters())) == by_step(run(tmp_path / "b"))


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a run that was stopped while evaluations were pending."""
    stop = AtRecord(
        lambda record: record.environment_steps >= 100,
        lambda: os.kill(os.getpid(), signal.SIGTERM),
    )
    result = run(tmp_path, AsideParameters(), audience=Audience(sinks=(stop,)))
    assert result.signal == signal.SIGTERM
    assert manifest_of(result)["evaluator"] == {"$type": f"{__name__}:AsideParameters"}
    return result.folder.path


def evaluated_at(run: RunResult) -> list[int]:
    return [each["environment_steps"] for each in lines_of(run) if each["kind"] == "evaluation"]


def test_pending_evaluations_are_made_by_the_part_of_the_manifest(
    stopped: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="trust"):
        resume_experiment(stopped, settings=PLAIN)
    trust = [__name__]
    fork = fork_experiment(stopped, name="fork", root=tmp_path, settings=PLAIN, trust=trust)
    assert manifest_of(fork)["evaluator"] == manifest_of(stopped)["evaluator"]
    resumed = resume_experiment(stopped, settings=PLAIN, trust=trust)
    assert evaluated_at(fork) == evaluated_at(resumed) == [64, 128, 192]
    later = resume_experiment(stopped, steps=EnvironmentSteps(256), settings=PLAIN, trust=trust)
    assert not later.parts  # nothing was pending


@pytest.mark.parametrize(
    ("recorded", "kind", "message"),
    [
        (
            {"$type": "coach_rl:Missing"},
            ConfigurationError,
            "unknown name 'Missing' in module",
        ),
        (3, CheckpointError, "its evaluator is no part of a run"),
    ],
)
def test_manifest_that_names_no_part_for_pending_evaluations_error(
    recorded: object, kind: type[Exception], message: str, stopped: Path
) -> None:
    change_manifest(stopped, evaluator=recorded)
    check_refused(lambda: resume_experiment(stopped, settings=PLAIN), kind, message)


def test_manifest_without_the_part_of_pending_evaluations_error(stopped: Path) -> None:
    manifest = manifest_of(stopped)
    del manifest["evaluator"]
    write_manifest(RunFolder(stopped), manifest)
    message = "does not name the part ... some are still pending; give that part again"
    check_refused(lambda: resume_experiment(stopped, settings=PLAIN), ConfigurationError, message)
