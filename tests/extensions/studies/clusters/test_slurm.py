"""Jobs on Slurm: what it is told, jobs that outlive the program, preemption; a pretended Slurm."""

import os
import signal
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.clusters.slurm import Slurm
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Needs, run_job
from coach_rl.runs.folder import RunFolder, read_manifest
from tests.extensions.studies.walks import holder, numbers, runs, walk
from tests.waiting import wait_until

COMMANDS = {
    "srun": "",
    "sbatch": """
cp "$1" "$PRETENDED/script"
echo submitted >> "$PRETENDED/calls"
grep -q refused "$PRETENDED/state" && { echo "sbatch: error: Invalid account" >&2; exit 1; }
echo "Submitted batch job $(cat "$PRETENDED/number")"
""",
    "sacct": """
echo "JobID|State|NodeList"
echo "$(cat "$PRETENDED/number")|$(cat "$PRETENDED/state")|node1"
""",
    "scancel": 'echo "CANCELLED by 0" > "$PRETENDED/state"',
}
_numbers = iter(range(70_000, 80_000))


@pytest.fixture
def pretended(tmp_path, monkeypatch):
    """A folder with what a Slurm that runs nothing has been told, and what it says of a job."""
    folder = tmp_path / "pretended"
    folder.mkdir()
    for name, script in COMMANDS.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    (folder / "state").write_text("PENDING\n")
    (folder / "number").write_text(str(next(_numbers)))
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("PRETENDED", str(folder))
    return folder


def calls(pretended: Path) -> int:
    return (pretended / "calls").read_text().count("submitted")


def test_slurm_is_told_what_a_job_needs(pretended, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    place = Slurm("long")
    future = place.submit(replace(walk(tmp_path), needs=Needs(cores=4, gpus=0.5, memory_gb=16)))
    script = (pretended / "script").read_text()
    for line in ("cpus-per-task=4", "gpus-per-node=1", "mem=16GB", "partition=long", "requeue"):
        assert f"#SBATCH --{line}\n" in script
    assert "#SBATCH --signal=USR2@90\n" in script
    assert "export OMP_NUM_THREADS=4\n" in script
    place.close(cancel=True)
    assert future.result(0).state == "stopped"


def test_a_program_started_again_waits_for_the_jobs_that_are_still_there(pretended, tmp_path):
    first, second = Slurm(), Slurm()
    first.submit(walk(tmp_path))
    second.submit(walk(tmp_path))
    assert calls(pretended) == 1
    second.submit(walk(tmp_path, seed=4))
    assert calls(pretended) == 2
    for place in (first, second):
        place.close(cancel=True)
    third = Slurm()
    third.submit(walk(tmp_path))
    assert calls(pretended) == 3
    third.close(cancel=True)


def test_a_job_that_slurm_refuses_says_why(pretended, tmp_path):
    (pretended / "state").write_text("refused")
    with closing(Slurm()) as place, pytest.raises(ConfigurationError, match="Invalid account"):
        place.submit(walk(tmp_path)).result(0)


def test_without_slurm_or_submitit_there_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigurationError, match="no Slurm on this machine"):
        Slurm()
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(ConfigurationError, match=r"needs submitit; .*\[slurm\]"):
        Slurm()


def test_a_preempted_job_saves_itself_and_goes_on(tmp_path):
    job = walk(tmp_path, steps=200, seconds_per_step=0.01)
    preempted = []

    def preempt(_statuses):
        if not preempted and (process := holder(tmp_path, 40)) is not None:
            preempted.append(process.pid)
            process.send_signal(signal.SIGUSR2)

    with closing(Slurm(cluster="local")) as place:
        (result,) = conduct([job], place, on_change=preempt)
    assert (result.state, result.folder) == ("done", runs(tmp_path)[0])
    assert len(read_manifest(RunFolder(result.folder))["resumes"]) == len(preempted) == 1
    assert numbers(result.folder) == numbers(run_job(replace(job, root=tmp_path / "alone")).folder)


def test_cancelled_jobs_save_themselves(tmp_path):
    job = walk(tmp_path, steps=100_000, seconds_per_step=0.01)
    place = Slurm(cluster="local")
    future = place.submit(job)
    wait_until(lambda: holder(tmp_path, 1))
    place.close(cancel=True)
    assert future.result(0).state == "stopped"
    assert (runs(tmp_path)[0] / "checkpoints").is_dir()
