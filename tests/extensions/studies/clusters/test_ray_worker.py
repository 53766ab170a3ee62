"""What a worker of a Ray cluster does with a job; no Ray is needed to see it."""

import os
import shutil
from dataclasses import replace

import pytest

from coach_rl.extensions.studies.clusters.ray_cluster import run_marked_job
from coach_rl.extensions.studies.job import find_run, run_job, with_absolute_paths
from tests.extensions.studies.walks import numbers, runs, walk

MARK = ".driver-here-1-abc"


def test_job_runs_in_the_folder_that_has_the_mark(tmp_path):
    job = with_absolute_paths(walk(tmp_path / "shared"))
    job.root.mkdir()
    (job.root / MARK).touch()
    result = run_marked_job(job, MARK, "first")
    assert (result.state, result.error) == ("done", "")
    assert result.folder == runs(job.root)[0] == find_run(job).path
    assert (job.root / f"{MARK}-first").is_file()  # by which the driver knows that it has begun
    assert numbers(result.folder) == numbers(run_job(walk(tmp_path / "alone")).folder)


@pytest.mark.parametrize("made", [True, False], ids=["another folder", "no folder"])
def test_job_on_a_machine_without_the_shared_folder_fails_with_its_path(tmp_path, made):
    job = with_absolute_paths(walk(tmp_path / "shared"))
    if made:
        job.root.mkdir()
    result = run_marked_job(job, MARK, "first")
    assert (result.state, result.folder) == ("failed", None)
    assert f"there is no folder {job.root} that is the one of the machine" in result.error
    assert "-ep" in result.error
    assert "\n" not in result.error
    assert not runs(job.root)


def test_job_whose_preset_is_not_on_the_machine_fails_with_its_path(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(walk(tmp_path).preset, folder / "own_walk.py")
    job = replace(walk(tmp_path / "shared"), preset=str(folder / "own_walk.py"))
    there = with_absolute_paths(job)
    there.root.mkdir()
    (there.root / MARK).touch()
    folder.rename(tmp_path / "gone")
    result = run_marked_job(there, MARK, "first")
    assert result.state == "failed"
    assert f"there is no preset file '{folder / 'own_walk.py'}'" in result.error


def test_job_for_another_working_directory_has_absolute_paths(tmp_path, monkeypatch):
    job = walk(tmp_path / "shared")
    monkeypatch.chdir(tmp_path)
    relative = replace(job, preset=os.path.relpath(job.preset), root=job.root.relative_to(tmp_path))
    there = with_absolute_paths(relative)
    assert there.root == job.root
    assert there.preset == f"{job.preset}:graph_manager"
    assert there.modules_from == tmp_path
