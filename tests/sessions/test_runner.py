"""Running, stopping, resuming and evaluating an experiment, with one that takes milliseconds."""

import json
import os
import re
import shutil
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    NonFiniteError,
    RunError,
)
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.finding import find_run
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.runs.lock import locked
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
from coach_rl.sessions.resuming import resume_experiment
from coach_rl.sessions.runner import Audience, RunResult, RunSettings, run_experiment
from coach_rl.sessions.stop_requests import StopRequests
from coach_rl.telemetry.records import LogRecord

PRESET = load_preset(find_preset(str(Path(__file__).parent.parent / "fake_preset.py")))
SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(3))


class Listener:
    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.closed = False

    def write(self, record: LogRecord) -> None:
        self.records.append(record)

    def flush(self) -> None: ...

    def close(self) -> None:
        self.closed = True


def run(root: Path, settings: RunSettings = SETTINGS, **panel: Any) -> RunResult:
    return run_experiment(
        PRESET.build(panel),
        Runtime(seed=3),
        name="walk",
        root=root,
        origin=Origin(preset=PRESET, panel=panel, command=("coach", "-p", "walk")),
        settings=settings,
    )


def state_of(result: RunResult, name: str = "last") -> Any:
    return read_checkpoint(find_checkpoint(result.folder.checkpoints, name)).state


def log_of(folder: RunFolder) -> list[dict[str, Any]]:
    """The log without times and checkpoints, which a stop changes."""
    lines = [json.loads(line) for line in (folder.path / "log.jsonl").read_text().splitlines()]
    kept = [line for line in lines if line["kind"] != "checkpoint"]
    return [{key: line[key] for key in line if "second" not in key} for line in kept]


def assert_equal_states(left: Any, right: Any) -> None:
    assert torch.equal(left.pop("weights"), right.pop("weights"))
    assert np.array_equal(left.pop("history"), right.pop("history"))
    assert left == right


def test_a_run_leaves_everything_in_its_folder(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.signal is None
    assert result.environment_steps == 100
    assert result.summary is not None
    assert result.folder.path.parent == tmp_path / "walk"
    names = {path.name for path in result.folder.path.iterdir()}
    assert {"manifest.json", "preset.py", "checkpoints", "log.jsonl", "summary.json"} <= names
    assert not [name for name in names if "tfevents" in name]
    assert "videos" not in names
    summary = json.loads(result.folder.summary.read_text())
    assert summary["env_steps"] == 100
    assert len(summary["evaluated_episodes"]["episode/reward"]) == 3
    assert summary["last_checkpoint"] == "checkpoints/step_100"
    kinds = [line["kind"] for line in log_of(result.folder)]
    assert kinds.count("episode") == 10
    assert kinds.count("evaluation") == 5
    assert kinds[-1] == "final_evaluation"


def test_the_best_evaluation_keeps_its_checkpoint(tmp_path: Path) -> None:
    result = run(tmp_path)
    rewards = {
        line["environment_steps"]: line["scalars"]["evaluation/reward_mean"]
        for line in log_of(result.folder)
        if line["kind"] == "evaluation"
    }
    best = max(rewards, key=lambda steps: rewards[steps])
    assert result.best is not None
    assert (result.best.environment_steps, result.best.reward) == (best, rewards[best])
    assert state_of(result, "best")["clock"]["environment_steps"] == best
    assert state_of(result)["clock"]["environment_steps"] == 100
    expected = {"last": 100, "best": best}
    assert len(list_checkpoints(result.folder.checkpoints)) == len(set(expected.values()))


def test_the_final_evaluation_has_starts_of_its_own(tmp_path: Path) -> None:
    manager = PRESET.build()
    run_experiment(manager, name="walk", root=tmp_path, settings=SETTINGS)
    assert manager.closed  # type: ignore[attr-defined]  # the fake's
    *periodic, final = manager.evaluation_seeds  # type: ignore[attr-defined]  # the fake's
    assert set(periodic) == {None}
    assert isinstance(final, int)


def test_a_function_in_place_of_what_it_returns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="an experiment is a GraphManager, got <function"):
        run_experiment(find_preset, name="walk", root=tmp_path)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_no_final_evaluation_where_none_is_wanted(tmp_path: Path) -> None:
    result = run(tmp_path, RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(0)))
    assert result.summary is None
    assert not result.folder.summary.exists()


@pytest.mark.parametrize("stop_at", [5, 20, 35, 60, 95])
def test_stopped_and_resumed_equals_never_stopped(tmp_path: Path, stop_at: int) -> None:
    whole = run(tmp_path / "whole")
    stopped = run(tmp_path / "stopped", signal_at=stop_at)
    assert stopped.signal == signal.SIGTERM
    assert stopped.summary is None
    assert not stopped.folder.summary.exists()
    resumed = resume_experiment(stopped.folder.path, settings=SETTINGS)
    assert resumed.folder == stopped.folder
    assert_equal_states(state_of(whole), state_of(resumed))
    assert log_of(whole.folder) == log_of(resumed.folder)
    assert whole.summary is not None
    assert resumed.summary is not None
    assert whole.summary.evaluation.scalars == resumed.summary.evaluation.scalars
    assert whole.best is not None
    assert resumed.best is not None
    assert whole.best.reward == resumed.best.reward
    manifest = json.loads(resumed.folder.manifest.read_text())
    (resume,) = manifest["resumes"]
    assert {key: resume[key] for key in ("versions", "hardware")} == {
        key: manifest[key] for key in ("versions", "hardware")
    }


def test_changed_versions_are_warned_of_when_resuming(tmp_path: Path) -> None:
    part = run(tmp_path)
    manifest = json.loads(part.folder.manifest.read_text())
    torch_now = manifest["versions"]["torch"]
    manifest["versions"] |= {"torch": "2.0.0"}
    write_manifest(part.folder, manifest)
    changed = re.escape(f"was made with torch 2.0.0, now {torch_now}; its numbers may differ")
    with pytest.warns(CoachWarning, match=changed):
        evaluate_run(part.folder.path, episodes=EnvironmentEpisodes(1))
    more = EnvironmentSteps(2 * part.environment_steps)
    with pytest.warns(CoachWarning, match=changed):
        resume_experiment(part.folder.path, steps=more, settings=SETTINGS)
    evaluate_run(part.folder.path, episodes=EnvironmentEpisodes(1))  # its last part is of today


def test_resuming_further_equals_training_further_at_once(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", steps=200)
    part = run(tmp_path / "part", steps=100)
    resumed = resume_experiment(part.folder.path, steps=EnvironmentSteps(200), settings=SETTINGS)
    assert_equal_states(state_of(whole), state_of(resumed))
    assert log_of(whole.folder) == log_of(resumed.folder)
    manifest = json.loads(resumed.folder.manifest.read_text())
    assert manifest["parameters"]["schedule"]["training"]["count"] == 200


def test_resuming_from_a_named_checkpoint_drops_later_ones_only_when_asked(tmp_path: Path) -> None:
    whole = run(tmp_path / "a")
    again = run(
        tmp_path / "b",
        RunSettings(tensorboard=False, checkpoints=CheckpointParameters(every_seconds=1e-9)),
    )
    steps = [path.name for path in list_checkpoints(again.folder.checkpoints)]
    assert len(steps) >= 10
    named = again.folder.checkpoints / "step_30"
    before = {path: path.read_bytes() for path in again.folder.path.rglob("*") if path.is_file()}
    message = (
        r"has continued from step_30 to step_100\w*; .*coach fork .*@step_30 --as NAME`; .*--drop"
    )
    for run_or_checkpoint in (named, Path(f"{again.folder.path}@30")):
        with pytest.raises(ConfigurationError, match=message):
            resume_experiment(run_or_checkpoint, settings=SETTINGS)
    after = {path: path.read_bytes() for path in again.folder.path.rglob("*") if path.is_file()}
    assert before == after
    resumed = resume_experiment(named, settings=SETTINGS, drop_later=True)
    assert_equal_states(state_of(whole), state_of(resumed))
    assert log_of(whole.folder) == log_of(resumed.folder)
    assert whole.best is not None
    assert resumed.best is not None
    assert whole.best.reward == resumed.best.reward
    assert state_of(resumed, "best")["clock"] == state_of(whole, "best")["clock"]


def test_a_crash_after_the_last_checkpoint_loses_nothing_before_it(tmp_path: Path) -> None:
    with pytest.raises(NonFiniteError, match="the loss is NaN"):
        run(tmp_path, fail_at=75)
    (folder,) = (tmp_path / "walk").iterdir()
    last = find_checkpoint(RunFolder(folder).checkpoints)
    lines = (folder / "log.jsonl").read_text().splitlines()
    assert json.loads(lines[-1])["environment_steps"] == 70
    state = read_checkpoint(last).state
    assert state["clock"]["environment_steps"] <= 60


def test_nothing_left_to_train_is_said_and_changes_nothing(tmp_path: Path) -> None:
    result = run(tmp_path)
    before = {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()}
    for steps in (None, EnvironmentSteps(100), EnvironmentSteps(50)):
        with pytest.raises(
            ConfigurationError, match="nothing left to train: step_100 has done 100"
        ):
            resume_experiment(result.folder.path, steps=steps, settings=SETTINGS)
    after = {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()}
    assert before == after


@pytest.mark.parametrize("while_writing", [False, True])
def test_a_run_killed_before_its_first_checkpoint_starts_again(
    tmp_path: Path, while_writing: bool
) -> None:
    whole = run(tmp_path / "whole")
    killed = run(tmp_path / "killed", signal_at=15)
    if while_writing:
        (only,) = killed.folder.checkpoints.glob("step_*")
        only.rename(only.with_name(f".{only.name}.new-1"))
        (killed.folder.checkpoints / "last").unlink()
    else:
        shutil.rmtree(killed.folder.checkpoints)
        (killed.folder.path / "log.jsonl").write_text("")
    with pytest.raises(CheckpointError, match="has no checkpoint yet that could be evaluated"):
        evaluate_run(killed.folder.path)
    again = resume_experiment(killed.folder.path, settings=SETTINGS)
    assert again.signal == signal.SIGTERM  # it comes to the step where it stops itself once more
    resumed = resume_experiment(killed.folder.path, settings=SETTINGS)
    assert_equal_states(state_of(whole), state_of(resumed))
    assert log_of(whole.folder) == log_of(resumed.folder)


def test_a_run_whose_checkpoints_were_deleted_is_left_as_it_is(tmp_path: Path) -> None:
    stopped = run(tmp_path, signal_at=60)
    for checkpoint in stopped.folder.checkpoints.glob("step_*"):
        shutil.rmtree(checkpoint)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(CheckpointError, match=r"all checkpoints of the run .* have been deleted"):
        resume_experiment(stopped.folder.path, settings=SETTINGS)
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    before.pop(lock := stopped.folder.path / ".lock")
    after.pop(lock)
    assert before == after


def test_a_run_in_use_is_left_alone(tmp_path: Path) -> None:
    stopped = run(tmp_path, signal_at=60)
    before = stopped.folder.manifest.read_bytes()
    in_use = pytest.raises(ConfigurationError, match=f"is in use by process {os.getpid()}")
    with locked(stopped.folder.path), in_use:
        resume_experiment(stopped.folder.path, settings=SETTINGS)
    assert stopped.folder.manifest.read_bytes() == before
    assert resume_experiment(stopped.folder.path, settings=SETTINGS).signal is None


def test_a_total_not_above_what_is_done_is_refused(tmp_path: Path) -> None:
    stopped = run(tmp_path, signal_at=60)
    with pytest.raises(
        ConfigurationError, match=r"step_60\w* has done 60 of 60 .* above 60 with --steps"
    ):
        resume_experiment(stopped.folder.path, steps=EnvironmentSteps(60), settings=SETTINGS)


def test_evaluating_a_run_changes_nothing_but_adds_a_file(tmp_path: Path) -> None:
    result = run(tmp_path)
    before = {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()}
    record, file = evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(4))
    assert result.summary is not None
    reward = record.scalars["evaluation/reward_mean"]
    assert reward == result.summary.evaluation.scalars["evaluation/reward_mean"]
    assert len(json.loads(file.read_text())["episodes"]["episode/reward"]) == 4
    best, other = evaluate_run(result.folder.checkpoints / "best", episodes=EnvironmentEpisodes(1))
    assert result.best is not None
    assert best.scalars["evaluation/reward_mean"] == result.best.reward
    assert file != other
    after = {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()}
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) == {file, other}


def test_evaluating_before_training() -> None:
    manager = PRESET.build()
    record = evaluate_untrained(manager, Runtime(), episodes=EnvironmentEpisodes(2))
    assert record.scalars["evaluation/reward_mean"] == 0.0
    assert manager.closed  # type: ignore[attr-defined]  # the fake's


@pytest.mark.parametrize("panel", [{"level": "moon"}])
def test_what_cannot_be_built_leaves_no_folder(tmp_path: Path, panel: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="moon"):
        run(tmp_path / "root", **panel)
    assert not (tmp_path / "root").exists()


def test_a_wrong_name_leaves_no_folder(tmp_path: Path) -> None:
    manager = PRESET.build()
    for name in ("", "a/b", "..", "../x", ".hidden", "a\nb"):
        with pytest.raises(ConfigurationError, match="cannot name a folder"):
            run_experiment(manager, name=name, root=tmp_path / "root")
    assert not (tmp_path / "root").exists()


def torch_settings() -> tuple[int, str]:
    return torch.get_num_threads(), torch.get_float32_matmul_precision()


class Settings:
    """Torch's settings whenever a run begins or goes on."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []
        self.audience = Audience(on_start=lambda *_: self.seen.append(torch_settings()))


def run_with(task: Runtime, root: Path, audience: Audience) -> RunResult:
    return run_experiment(
        PRESET.build(), task, name="walk", root=root, settings=SETTINGS, audience=audience
    )


def task_of(result: RunResult) -> dict[str, Any]:
    return dict(json.loads(result.folder.manifest.read_text())["task"])


def test_a_resumed_run_keeps_its_threads_and_precision_and_both_are_put_back(
    tmp_path: Path,
) -> None:
    before, settings = torch_settings(), Settings()
    assert before[1] == "highest"
    threads = before[0] + 1
    task = Runtime(threads=threads, matmul_precision="medium")
    result = run_with(task, tmp_path, settings.audience)
    more = EnvironmentSteps(result.environment_steps + 10)
    resumed = resume_experiment(
        result.folder.path, steps=more, settings=SETTINGS, audience=settings.audience
    )
    assert settings.seen == [(threads, "medium")] * 2
    assert torch_settings() == before
    assert task_of(resumed)["threads"] == threads


def test_other_threads_are_followed_with_a_warning_and_remembered(tmp_path: Path) -> None:
    settings = Settings()
    result = run_with(Runtime(threads=2), tmp_path, settings.audience)
    for threads, kept in ((3, None), (None, 3)):
        more = EnvironmentSteps(result.environment_steps + 10)
        expected = [] if threads is None else [f"{result.folder.path} was made with threads 2, now"]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = resume_experiment(
                result.folder.path,
                steps=more,
                threads=threads,
                settings=SETTINGS,
                audience=settings.audience,
            )
        said = [str(warning.message) for warning in caught]
        assert [line[: len(start)] for line, start in zip(said, expected, strict=True)] == expected
        assert settings.seen[-1][0] == (threads or kept) == task_of(result)["threads"]
    with pytest.warns(CoachWarning, match="threads 3, now 1; its numbers may differ"):
        evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1), threads=1)
    evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))


def test_a_run_from_before_threads_were_remembered_takes_the_default(tmp_path: Path) -> None:
    settings = Settings()
    result = run_with(Runtime(threads=2), tmp_path, settings.audience)
    manifest = json.loads(result.folder.manifest.read_text())
    del manifest["task"]["threads"]
    write_manifest(result.folder, manifest)
    more = EnvironmentSteps(result.environment_steps + 10)
    with pytest.warns(CoachWarning, match="before Runtime had the field threads; it takes"):
        resume_experiment(
            result.folder.path, steps=more, settings=SETTINGS, audience=settings.audience
        )
    assert settings.seen[-1][0] == 1


def test_what_the_process_has_set_is_remembered_and_compared(tmp_path: Path) -> None:
    result = run(tmp_path)
    manifest = json.loads(result.folder.manifest.read_text())
    set_then = manifest["settings"]
    assert set_then["default_dtype"] == "float32"
    assert set_then["deterministic_algorithms"] is False
    changed = set_then | {"numpy_threads": 64, "deterministic_algorithms": True}
    manifest["settings"] = changed
    write_manifest(result.folder, manifest)
    now = f"numpy threads 64, now {set_then['numpy_threads']}, deterministic algorithms True, now F"
    with pytest.warns(CoachWarning, match=now):
        evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))
    del manifest["settings"]  # as in older runs
    write_manifest(result.folder, manifest)
    evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))


def test_the_audience_hears_every_record_and_closes_its_own_sinks(tmp_path: Path) -> None:
    listener = Listener()
    result = run_experiment(
        PRESET.build(),
        name="walk",
        root=tmp_path,
        settings=SETTINGS,
        audience=Audience(sinks=(listener,)),
    )
    lines = (result.folder.path / "log.jsonl").read_text().splitlines()
    assert [record.kind for record in listener.records] == [
        json.loads(line)["kind"] for line in lines
    ]
    assert not listener.closed


class Stop(BaseException):
    """An exit of its own kind."""


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), Stop("enough")])
def test_run_exit_raised_by_code_of_others_is_an_error_with_the_steps_done(
    tmp_path: Path, error: BaseException
) -> None:
    class Exits(Listener):
        def write(self, record: LogRecord) -> None:
            if record.kind == "evaluation":
                raise error

    with pytest.raises(RunError, match=rf"^{type(error).__name__}: .* The run had done \d+ env"):
        run_with(Runtime(seed=3), tmp_path, Audience(sinks=(Exits(),)))


@pytest.mark.parametrize("error", [SystemExit(0), Stop("enough")])
def test_run_exit_raised_while_it_is_built_is_an_error(
    tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = PRESET.build({})

    def exits(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(manager, "create_graph", exits)
    with pytest.raises(RunError, match=rf"^{type(error).__name__}: .* was raised inside the run"):
        run_experiment(manager, Runtime(seed=3), name="walk", root=tmp_path)


def test_what_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is neither a run's folder"):
        find_run(tmp_path)
    with pytest.raises(ConfigurationError, match="is neither a run's folder"):
        resume_experiment(tmp_path / "nowhere")


def test_a_broken_manifest_is_said(tmp_path: Path) -> None:
    result = run(tmp_path)
    manifest = json.loads(result.folder.manifest.read_text())
    manifest.pop("checksum")  # as who edits it on purpose does
    for change, message in (
        ({"schema_version": 9}, "has schema version 9"),
        ({"graph_manager": "coach_rl.core.steps:EnvironmentSteps"}, "which is no GraphManager"),
    ):
        result.folder.manifest.write_text(json.dumps(manifest | change))
        with pytest.raises((CheckpointError, ConfigurationError), match=message):
            resume_experiment(result.folder.path)
    result.folder.manifest.write_text("[]")
    with pytest.raises(CheckpointError, match="holds no JSON object"):
        resume_experiment(result.folder.path)
    result.folder.manifest.write_text("{}")
    with pytest.raises(CheckpointError, match="lacks schema_version"):
        resume_experiment(result.folder.path)


def test_the_second_signal_stops_at_once() -> None:
    said: list[str] = []
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with StopRequests(said.append) as stop, stop.patient():
        assert stop.signal is None
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.signal == signal.SIGINT
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    errors: list[BaseException] = []

    def enter() -> None:
        try:
            with StopRequests():
                pass
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert errors == []
