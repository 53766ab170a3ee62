"""Workers that don't share the driver's disk bring their runs home; no Ray is needed to see it."""

import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl.core.errors import CheckpointError
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.studies.clusters import copying, ray_cluster
from coach_rl.studies.clusters.copying import RunCopy, RunStore, bundled, with_absolute_paths
from coach_rl.studies.clusters.ray_cluster import RemoteJob, run_for
from coach_rl.studies.job import Job, find_run, identity, run_job
from tests.studies.walks import numbers, runs, walk

ELSEWHERE = "no such mark"


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path, monkeypatch):
    """What workers keep on their own disk; and no run waits long for another."""
    (tmp_path / "worker").mkdir()
    monkeypatch.setattr(copying.tempfile, "tempdir", str(tmp_path / "worker"))
    monkeypatch.setattr(ray_cluster, "GONE_AFTER_SECONDS", 0.5)


def remote(job: Job, attempt: str = "first") -> RemoteJob:
    run = find_run(job)
    return RemoteJob(
        job=with_absolute_paths(job),
        attempt=attempt,
        digest=identity(job),
        run=None if run is None else run.path.name,
        mark=ELSEWHERE,
    )


def calls(store: RunStore):
    return lambda method, *arguments: getattr(store, method)(*arguments)


def left_behind(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "worker").rglob("manifest.json")]


def test_a_run_made_elsewhere_comes_home_whole(tmp_path):
    job = walk(tmp_path / "home")
    result = run_for(remote(job), bundled(job), calls(RunStore(job.root)))
    assert (result.state, result.folder) == ("done", runs(job.root)[0])
    assert numbers(result.folder) == numbers(run_job(walk(tmp_path / "alone")).folder)
    assert not left_behind(tmp_path)


def test_a_run_that_home_has_begun_goes_on_elsewhere(tmp_path):
    job = walk(tmp_path / "home", steps=60)
    job = replace(job, overrides={**job.overrides, "checkpoints.every_steps": 20})
    whole = run_job(replace(job, root=tmp_path / "alone")).folder
    half = shutil.copytree(whole, job.root / "walk" / whole.name)
    RunFolder(half).summary.unlink()
    for path in list_checkpoints(RunFolder(half).checkpoints)[1:]:
        shutil.rmtree(path)
    (half / "checkpoints" / "last").unlink()
    result = run_for(remote(job), bundled(job), calls(RunStore(job.root)))
    assert (result.state, result.folder) == ("done", half)
    assert len(read_manifest(RunFolder(half))["resumes"]) == 1
    assert numbers(half) == numbers(whole)


def test_a_running_job_sends_home_what_it_has_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_cluster, "SEND_EVERY_SECONDS", 0.01)
    job = walk(tmp_path / "home", steps=200, seconds_per_step=0.005)
    job = replace(job, overrides={**job.overrides, "checkpoints.every_steps": 20})
    seen = []

    def call(method, *arguments):
        if method == "commit":
            seen.append(len(runs(job.root)) and find_run(job))
        return getattr(store, method)(*arguments)

    store = RunStore(job.root)
    result = run_for(remote(job), bundled(job), call)
    assert result.state == "done"
    assert [run for run in seen if run]  # before its end


def test_a_preset_travels_with_its_neighbours_and_its_run_says_where_it_came_from(tmp_path):
    folder, known = tmp_path / "mine", {*sys.modules}
    folder.mkdir()
    shutil.copy(walk(tmp_path).preset, folder / "own_walk.py")
    source = (folder / "own_walk.py").read_text()
    (folder / "own_walk.py").write_text(f"import walk_neighbour\n{source}")
    (folder / "walk_neighbour.py").write_text("LENGTH = 1\n")
    job = replace(walk(tmp_path / "home"), preset=str(folder / "own_walk.py"))
    there, parcel = remote(job), bundled(job)
    folder.rename(tmp_path / "gone")
    for name in {*sys.modules} - known:  # which a worker has not imported
        del sys.modules[name]
    result = run_for(there, parcel, calls(RunStore(job.root)))
    assert (result.state, result.error) == ("done", "")
    assert read_manifest(RunFolder(result.folder))["preset"]["file"] == str(folder / "own_walk.py")


def test_a_preset_whose_folder_is_too_large_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "MOST_BYTES", 1_000_000)
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(walk(tmp_path).preset, folder / "own_walk.py")
    (folder / "data").write_bytes(bytes(2_000_000))
    job = replace(walk(tmp_path / "home"), preset=str(folder / "own_walk.py"))
    there, parcel = remote(job), bundled(job)
    assert run_for(there, parcel, calls(RunStore(job.root))).state == "done"  # it is here
    folder.rename(tmp_path / "gone")
    result = run_for(there, parcel, calls(RunStore(job.root)))
    assert result.state == "failed"
    assert "holds more than 1 MB, too much to send" in result.error


def test_two_new_runs_of_one_name_are_kept_apart(tmp_path):
    jobs = [walk(tmp_path / "home"), walk(tmp_path / "home", steps=30)]
    store = RunStore(tmp_path / "home")
    made = []
    for job in jobs:
        store.begin(identity(job), identity(job), job.name, None)
        folder = run_job(replace(job, root=tmp_path / identity(job))).folder
        made.append(RunCopy(folder.rename(folder.with_name("same"))))
        store.place(identity(job), "same")
    names = [store._copy(identity(job)).run.path.name for job in jobs]
    assert names == ["same", "same_2"]


def test_a_worker_thought_lost_cannot_write_any_more(tmp_path):
    store = RunStore(tmp_path)
    store.begin("first", "job", "walk", None)
    store.begin("second", "job", "walk", None)
    with pytest.raises(RunInUseError, match="given to another worker"):
        store.place("first", "run")
    assert store.begun() == ["second"]


def test_a_run_is_locked_at_home_while_a_worker_has_it(tmp_path):
    job = walk(tmp_path / "home")
    folder = run_job(job).folder
    store = RunStore(job.root)
    store.begin("first", "job", job.name, folder.name)
    with pytest.raises(RunInUseError), locked(folder):
        pass
    store.end("first", RunCopy(folder).listing())
    with locked(folder):
        result = run_for(remote(job), bundled(job), calls(store))
    assert result.state == "failed"
    assert "is in use by" in result.error


def test_a_run_that_is_not_home_whole_is_an_error(tmp_path):
    job = walk(tmp_path / "home")
    folder = run_job(job).folder
    store = RunStore(job.root)
    listing = RunCopy(folder).listing()
    (folder / "log.jsonl").write_text("something else\n")
    store.begin("first", "job", job.name, folder.name)
    with pytest.raises(CheckpointError, match=r"differs from what its worker has in log\.jsonl"):
        store.end("first", listing)


def test_a_full_disk_at_home_keeps_the_run_where_it_was_made(tmp_path):
    job, store = walk(tmp_path / "home"), RunStore(tmp_path / "home")

    def call(method, *arguments):
        if method == "put":
            raise OSError(28, "No space left on device")
        return getattr(store, method)(*arguments)

    result = run_for(remote(job), bundled(job), call)
    assert result.state == "failed"
    assert "could not be brought back: OSError: [Errno 28] No space left on device" in result.error
    (kept,) = left_behind(tmp_path)
    assert str(kept.parent.parent.parent) in result.error
    assert run_for(remote(job, "again"), bundled(job), calls(store)).state == "done"
    assert left_behind(tmp_path) == [kept]


def test_a_full_disk_of_a_worker_is_one_line(tmp_path, monkeypatch):
    def full(*_args, **_named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ray_cluster.tempfile, "mkstemp", full)
    job = walk(tmp_path / "home")
    result = run_for(remote(job), bundled(job), calls(RunStore(job.root)))
    assert result.state == "failed"
    assert "No space left on device" in result.error
    assert "\n" not in result.error
    assert not runs(job.root)


def test_folders_of_killed_workers_are_removed(tmp_path):
    parent = copying.own_folder() / "runs"
    parent.mkdir()
    (parent / "run-dead.lock").touch()
    (parent / "run-dead").mkdir()
    job = walk(tmp_path / "home")
    run_for(remote(job), bundled(job), calls(RunStore(job.root)))
    assert list(parent.iterdir()) == []


def test_threads_end_with_their_run(tmp_path):
    before = threading.active_count()
    job = walk(tmp_path / "home")
    run_for(remote(job), bundled(job), calls(RunStore(job.root)))
    assert threading.active_count() == before
