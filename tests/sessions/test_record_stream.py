"""Callbacks and sinks of an experiment in a run: checkpoints, ending, resuming, failures."""

import json
from dataclasses import dataclass

import pytest

from coach_rl.core.errors import CallbackError, CoachWarning, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.core.saved import Saved
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.runs import logs
from coach_rl.runs.checkpoint import BEST, list_checkpoints, pointed
from coach_rl.runs.folder import read_manifest
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import Audience, RunSettings
from tests.small_runs import experiment, lines_of, ppo

SETTINGS = RunSettings(final_episodes=EnvironmentEpisodes(1), tensorboard=False)


class Patience(Saved):
    """Ends a run after so many evaluations."""

    SAVED = ("seen",)

    def __init__(self, most):
        self.most, self.seen = most, 0

    def __call__(self, record, run):
        if record.kind == "evaluation":
            self.seen += 1
            if self.seen >= self.most:
                run.stop(f"{self.seen} evaluations")
            return run.note({"patience/seen": self.seen})
        return None


@dataclass(frozen=True, kw_only=True)
class PatienceParameters:
    most: int = 3

    def build(self):
        return Patience(self.most)


def keep_the_first(record, run):
    """Keeps a checkpoint of the first progress record."""
    if record.kind == "progress" and record.environment_steps < 150:
        run.progress.request_checkpoint()


class TextSink:
    """Writes kinds of records into a file."""

    def __init__(self, run):
        self._file = (run.folder / f"{run.manifest['name']}.txt").open("a")
        print(run.settings["seed"], run.settings["schedule.training"], file=self._file)

    def write(self, record):
        self._file.write(f"{record.kind}\n")

    def close(self):
        self._file.close()


class FailingSink:
    """Fails at every evaluation, in its own words."""

    def __init__(self, run):
        pass

    def write(self, record):
        if record.kind == "evaluation":
            raise LookupError("no such service")

    def close(self):
        raise LookupError("no such service")


class Stop(BaseException):
    """An exit of its own kind."""


@dataclass(frozen=True, kw_only=True)
class LeavingParameters:
    def build(self):
        return Leaving()


def manager(**changed):
    intervals = {"evaluation_interval": 100, "progress_interval": 100}
    agent = ppo(64, epochs=1, minibatch=32)
    return experiment(agent, training=600, num_envs=4, **intervals, **changed)


def run(root, audience=None, **changed):
    task = Runtime(seed=2, device="cpu")
    return run_experiment(
        manager(**changed), task, name="s", root=root, settings=SETTINGS, audience=audience
    )


def notes_of(result):
    lines = (line for line in lines_of(result) if line["kind"] == "note")
    return [(line["environment_steps"], line["scalars"]) for line in lines]


def test_callback_of_the_parameters_ends_a_run(tmp_path):
    result = run(tmp_path, callbacks=(PatienceParameters(most=2), keep_the_first))
    assert (result.ending, result.environment_steps) == ("2 evaluations", 200)
    assert json.loads(result.folder.summary.read_text())["ending"] == "2 evaluations"
    assert notes_of(result) == [(100, {"patience/seen": 1.0}), (200, {"patience/seen": 2.0})]
    recorded = read_manifest(result.folder)["parameters"]["callbacks"]
    assert [str(each)[-40:].partition(":")[2] for each in map(dict.values, recorded)]
    kept = [path.name for path in list_checkpoints(result.folder.checkpoints)]
    assert "step_100" in kept, "it was asked for"
    assert pointed(result.folder.checkpoints, BEST) is not None, "notes hide no evaluation"
    longer = resume_experiment(result.folder.path, steps=EnvironmentSteps(800), settings=SETTINGS)
    assert (longer.ending, longer.environment_steps) == ("3 evaluations", 300)
    evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))


def test_callback_of_a_resumed_run_continues_exactly(tmp_path):
    callbacks = (PatienceParameters(most=5), keep_the_first)
    whole = run(tmp_path / "whole", callbacks=callbacks)
    killed = run(tmp_path / "killed", callbacks=callbacks)
    at = killed.folder.checkpoints / "step_100"
    resumed = resume_experiment(at, drop_later=True, settings=SETTINGS)
    assert resumed.ending == whole.ending == "5 evaluations"
    assert notes_of(resumed) == notes_of(whole)


def test_callback_of_an_audience_is_passed_again_on_resume(tmp_path):
    stopping = Audience(callbacks=(Patience(2),))
    result = run(tmp_path, audience=stopping)
    assert read_manifest(result.folder)["parameters"]["callbacks"] == []
    again = Audience(callbacks=(Patience(4),))
    steps = EnvironmentSteps(700)
    resumed = resume_experiment(result.folder.path, steps=steps, audience=again, settings=SETTINGS)
    assert (resumed.ending, resumed.environment_steps) == ("4 evaluations", 400)
    with pytest.warns(CoachWarning):
        resume_experiment(result.folder.path, steps=EnvironmentSteps(500), settings=SETTINGS)


def test_callback_error_ends_the_run_and_loses_nothing(tmp_path):
    def broken(record, run):
        if record.environment_steps >= 300:
            raise ZeroDivisionError("division by zero")

    with pytest.raises(CallbackError):
        run(tmp_path, audience=Audience(callbacks=(broken,)))
    (folder,) = (tmp_path / "s").iterdir()
    assert resume_experiment(folder, settings=SETTINGS).environment_steps == 600


def test_sink_of_the_parameters_is_built_again_on_resume(tmp_path):
    result = run(tmp_path, sinks=(TextSink,))
    kinds = (result.folder.path / "s.txt").read_text().split()
    assert kinds[:2] == ["2", "600"]  # the run's settings
    assert {"evaluation", "checkpoint", "final_evaluation"} <= set(kinds)
    resume_experiment(result.folder.path, steps=EnvironmentSteps(700), settings=SETTINGS)
    assert len((result.folder.path / "s.txt").read_text().split()) > len(kinds)


def test_sink_that_fails_costs_its_records_only(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "SERVICE_RETRY_SECONDS", 0.0)
    with pytest.warns(CoachWarning):
        result = run(tmp_path, sinks=(FailingSink,))
    assert result.ending == "environment steps"
    (incident,) = result.incidents
    assert incident.startswith("FailingSink lost 7 records (LookupError: no such service")


class Leaving:
    """Ends the process, or tries to, when it is closed; a sink, and a callback."""

    error: BaseException = SystemExit(3)

    def __init__(self, run=None):
        pass

    def __call__(self, record, run):
        return None

    def write(self, record): ...

    def close(self):
        raise self.error


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("error", [RuntimeError("no"), SystemExit(3), KeyboardInterrupt(), Stop()])
@pytest.mark.parametrize("what", ["sink", "callback", "callback of the audience"])
def test_closing_that_fails_is_a_warning_and_the_run_is_saved(tmp_path, what, error, monkeypatch):
    monkeypatch.setattr(Leaving, "error", error)
    given = {
        "sink": {"sinks": (Leaving,)},
        "callback": {"callbacks": (LeavingParameters(),)},
        "callback of the audience": {"audience": Audience(callbacks=(Leaving(),))},
    }
    with pytest.warns(CoachWarning, match="Leaving"):
        result = run(tmp_path, **given[what])
    assert result.folder.summary.exists()
    assert (result.signal, result.unsaved) == (None, None)


@dataclass(frozen=True, kw_only=True)
class Nowhere:
    def check(self):
        raise ConfigurationError("no such place")

    def build(self, run):
        return TextSink(run)
