"""Running, stopping, resuming and evaluating an experiment, with one that takes milliseconds."""

import json
import os
import signal
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.log_records import LogRecord
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.evaluations import EvaluationSchedule, Scores
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
from coach_rl.sessions.session import (
    Audience,
    RunResult,
    RunSettings,
    resume_experiment,
    run_experiment,
)
from coach_rl.sessions.stop_requests import StopRequests
from tests.small_runs import (
    QUIET,
    change_manifest,
    lines_of,
    log_of,
    manifest_of,
    preset,
)

PRESET = preset()
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


def test_run_experiment_writes_its_folder(tmp_path: Path) -> None:
    whole = run(tmp_path)
    assert whole.signal is None
    assert whole.environment_steps == 100
    assert whole.summary is not None
    assert whole.folder.path.parent.name == "walk"
    names = {path.name for path in whole.folder.path.iterdir()}
    assert {"manifest.json", "preset.py", "checkpoints", "log.jsonl", "summary.json"} <= names
    assert not [name for name in names if "tfevents" in name]
    assert "videos" not in names
    summary = json.loads(whole.folder.summary.read_text())
    assert summary["env_steps"] == 100
    assert len(summary["evaluated_episodes"]["episode/reward"]) == 3
    assert summary["last_checkpoint"] == "checkpoints/step_100"
    kinds = [line["kind"] for line in log_of(whole.folder)]
    assert kinds.count("episode") == 10
    assert kinds.count("evaluation") == 5
    assert kinds[-1] == "final_evaluation"


def test_final_evaluation_has_its_own_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, play = [], EvaluationSchedule.play

    def played(self: EvaluationSchedule, *args: Any, **kwargs: Any) -> Scores:
        seeds.append(kwargs.get("seed"))
        return play(self, *args, **kwargs)

    monkeypatch.setattr(EvaluationSchedule, "play", played)
    run(tmp_path)
    *periodic, final = seeds
    assert set(periodic) == {None}
    assert isinstance(final, int)


def test_run_experiment_closes_the_graph_manager(tmp_path: Path) -> None:
    manager = PRESET.build()
    run_experiment(manager, name="walk", root=tmp_path, settings=SETTINGS)
    with pytest.raises(ConfigurationError):
        _ = manager.graph


def test_run_experiment_without_final_episodes_has_no_summary(tmp_path: Path) -> None:
    result = run(tmp_path, QUIET)
    assert result.summary is None
    assert not result.folder.summary.exists()


def test_resume_with_other_versions_warns(tmp_path: Path) -> None:
    part = run(tmp_path)
    change_manifest(part, versions=manifest_of(part)["versions"] | {"torch": "2.0.0"})
    with pytest.warns(CoachWarning):
        evaluate_run(part.folder.path, episodes=EnvironmentEpisodes(1))
    more = EnvironmentSteps(2 * part.environment_steps)
    with pytest.warns(CoachWarning):
        resume_experiment(part.folder.path, steps=more, settings=SETTINGS)
    evaluate_run(part.folder.path, episodes=EnvironmentEpisodes(1))  # its last part is of today


def test_evaluate_untrained_closes_the_graph_manager() -> None:
    manager = PRESET.build()
    record = evaluate_untrained(manager, Runtime(), episodes=EnvironmentEpisodes(2))
    assert record.scalars["evaluation/reward_mean"] == 0.0
    with pytest.raises(ConfigurationError):
        _ = manager.graph


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
    return dict(manifest_of(result)["task"])


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


def test_resume_with_other_threads_warns_and_remembers_them(tmp_path: Path) -> None:
    settings = Settings()
    result = run_with(Runtime(threads=2), tmp_path, settings.audience)
    for steps, threads, warned in (
        (110, 3, pytest.warns(CoachWarning)),
        (120, None, nullcontext()),
    ):
        with warned:
            result = resume_experiment(
                result.folder.path,
                steps=EnvironmentSteps(steps),
                threads=threads,
                settings=SETTINGS,
                audience=settings.audience,
            )
        assert settings.seen[-1][0] == task_of(result)["threads"] == 3
    evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))  # without a warning


def test_audience_sinks_get_every_record_and_stay_open(tmp_path: Path) -> None:
    listener = Listener()
    result = run_experiment(
        PRESET.build(),
        name="walk",
        root=tmp_path,
        settings=SETTINGS,
        audience=Audience(sinks=(listener,)),
    )
    assert [each.kind for each in listener.records] == [line["kind"] for line in lines_of(result)]
    assert not listener.closed


def test_second_signal_stops_at_once() -> None:
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


@pytest.mark.parametrize("number", [signal.SIGUSR2, signal.SIGXCPU])
def test_signal_of_a_scheduler_stops_unless_the_program_has_a_handler(
    number: signal.Signals,
) -> None:
    with StopRequests(), StopRequests() as stop, stop.patient():  # a job, and its run
        os.kill(os.getpid(), number)
        assert stop.signal == number
    own: list[int] = []
    before = signal.signal(number, lambda number, _frame: own.append(number))
    try:
        with StopRequests() as stop, stop.patient():
            os.kill(os.getpid(), number)
        assert (stop.signal, own) == (None, [number])
    finally:
        signal.signal(number, before)


def test_limit_of_processor_time_which_is_repeated_lets_the_run_save() -> None:
    with StopRequests() as stop, stop.patient():
        for _ in range(3):
            os.kill(os.getpid(), signal.SIGXCPU)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_stop_requests_outside_the_main_thread_ignore_signals() -> None:
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
