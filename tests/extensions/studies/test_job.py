"""The run of a job: known by what decides its numbers, made once, resumed where it was left."""

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.studies.job import find_run, identity, run_job
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.runs.lock import locked
from coach_rl.sessions.session import resume_experiment
from tests.extensions.studies.walks import WALK, numbers, runs, walk


def test_identity_explicit_default_is_equal(tmp_path):
    job = walk(tmp_path)
    same = walk(tmp_path, learning_rate=0.1, **{"schedule.training": EnvironmentSteps(100)})
    assert identity(job) == identity(same)
    assert identity(job) == identity(replace(job, preset=os.path.relpath(WALK), labels={}))


@pytest.mark.parametrize(
    "changed",
    [{"learning_rate": 0.2}, {"level": "sea"}, {"steps": 99}, {"agent.layers": (4,)}, {"seed": 4}],
)
def test_identity_other_parameter_differs(tmp_path, changed):
    assert identity(walk(tmp_path, **changed)) != identity(walk(tmp_path))


def test_identity_threads_and_precision_count(tmp_path):
    job = walk(tmp_path)
    known = identity(job)
    assert identity(replace(job, task=replace(job.task, threads=2))) != known
    assert identity(replace(job, task=replace(job.task, matmul_precision="high"))) != known
    assert identity(replace(job, task=replace(job.task, device="auto"))) == known
    assert identity(walk(tmp_path, checkpoints=CheckpointParameters(every_seconds=60.0))) == known


def test_identity_default_threads(tmp_path):
    job = walk(tmp_path)
    two = replace(job, task=replace(job.task, threads=2))
    assert identity(walk(tmp_path, threads=2)) == identity(two)
    assert identity(replace(walk(tmp_path, threads=2), task=two.task)) == identity(two)
    assert identity(job) == identity(replace(job, task=replace(job.task, threads=1)))


def test_run_job_finished_run_unchanged(tmp_path):
    job = walk(tmp_path)
    assert find_run(job) is None
    result = run_job(job)
    assert (result.state, result.error) == ("done", "")
    assert find_run(job) == RunFolder(runs(tmp_path)[0])
    before = (result.folder / "log.jsonl").stat().st_mtime_ns
    assert run_job(job) == result
    assert runs(tmp_path) == [result.folder]
    assert (result.folder / "log.jsonl").stat().st_mtime_ns == before


def test_run_job_manifest_has_labels(tmp_path):
    job = walk(tmp_path)
    entry = read_manifest(RunFolder(run_job(job).folder))["job"]
    assert entry == {"identity": identity(job), "labels": {"study": "walks", "variant": "slow"}}


def test_run_job_manifest_has_single_run_command(tmp_path):
    job = walk(tmp_path, learning_rate=0.25)
    job = replace(job, task=replace(job.task, threads=1))  # those of the preset, as in studies
    run = run_job(job).folder
    command = read_manifest(RunFolder(run))["command"]
    given = dict(zip(command[1::2], command[2::2], strict=True))
    assert given.pop("-cp") == "learning_rate=0.25"
    assert given == {"-p": WALK, "--seed": "3", "--device": "cpu", "-e": "walk"}
    typed = replace(walk(tmp_path, seed=4), command=("coach", "as", "typed"))
    assert read_manifest(RunFolder(run_job(typed).folder))["command"] == ["coach", "as", "typed"]


def test_run_job_stopped_run_resumes_same_numbers(tmp_path):
    whole = run_job(walk(tmp_path / "whole", signal_at=1000))
    job = walk(tmp_path, signal_at=45)
    stopped = run_job(job)
    assert stopped.state == "stopped"
    assert find_run(job).path == stopped.folder
    result = run_job(job)
    assert (result.state, result.folder) == ("done", stopped.folder)
    assert numbers(result.folder) == numbers(whole.folder)
    assert runs(tmp_path) == [result.folder]


def test_run_job_early_signal_stops(tmp_path, monkeypatch):
    from coach_rl.extensions.studies import job

    monkeypatch.setattr(job, "load_preset", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert run_job(walk(tmp_path)).state == "stopped"


def test_run_job_failed_run_result(tmp_path):
    result = run_job(walk(tmp_path, fail_at=35))
    assert result.state == "failed"
    assert result.folder == runs(tmp_path)[0]
    assert result.error.startswith("the loss is NaN. The run had done 35 environment steps")


def test_run_job_unresolvable_fails_without_folder(tmp_path):
    with pytest.raises(UnknownNameError):
        identity(walk(tmp_path, lerning_rate=1))
    result = run_job(walk(tmp_path, lerning_rate=1))
    assert (result.state, result.folder) == ("failed", None)
    assert "did you mean 'learning_rate'?" in result.error
    assert not list(tmp_path.iterdir())


def test_run_job_foreign_error_names_place(tmp_path, monkeypatch):
    from coach_rl.extensions.studies import job

    monkeypatch.setattr(job, "load_preset", lambda _: 1 / 0)
    error = run_job(walk(tmp_path)).error
    assert error.startswith("ZeroDivisionError: division by zero (")
    assert "\n" not in error


def test_run_job_without_checkpoints_starts_over(tmp_path):
    off = CheckpointParameters(enabled=False)
    assert run_job(walk(tmp_path, signal_at=45, checkpoints=off)).state == "stopped"
    first = runs(tmp_path)
    again = run_job(walk(tmp_path, signal_at=45, checkpoints=off))
    assert again.folder not in first


def test_find_run_resumed_with_other_parameters_is_another(tmp_path):
    job = walk(tmp_path)
    run = run_job(job).folder
    resume_experiment(run, steps=EnvironmentSteps(140))
    assert find_run(job) is None


def test_run_job_damaged_manifest_result(tmp_path):
    job = walk(tmp_path)
    folder = RunFolder(run_job(job).folder)
    folder.manifest.write_text(folder.manifest.read_text().replace("line", "sea"))
    assert f"{folder.manifest} is damaged" in run_job(job).error
    assert runs(tmp_path) == [folder.path]


def test_run_job_held_run_is_awaited(tmp_path, monkeypatch):
    job = walk(tmp_path, signal_at=45)
    run = run_job(job).folder
    free = threading.Event()
    monkeypatch.setattr(time, "sleep", lambda _seconds: free.set())  # of the job, which waits

    def hold() -> None:
        with locked(run):
            held.set()
            free.wait()

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    result = run_job(job)
    assert free.is_set()
    holder.join()
    assert result.state == "done"


def test_run_job_finished_by_another_process_meanwhile_is_done(tmp_path, monkeypatch):
    job = walk(tmp_path, signal_at=45)
    run = run_job(job).folder
    finish = resume_experiment

    def resume(path, **more):
        finish(path)
        return finish(path, **more)

    monkeypatch.setattr("coach_rl.extensions.studies.job.resume_experiment", resume)
    result = run_job(job)
    assert (result.state, result.error, result.folder) == ("done", "", run)


def test_run_job_two_processes_one_run(tmp_path):
    job = walk(tmp_path, steps=60, seconds_per_step=0.01)
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=run_job, args=(job,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert len(runs(tmp_path)) == 1
    assert run_job(job).state == "done"
