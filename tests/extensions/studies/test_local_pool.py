"""A pool of processes from a server: bounded, replaced when killed, stopped by signals."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Job, run_job
from coach_rl.extensions.studies.places import LocalPool
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.sessions.stop_requests import Interrupted
from tests.extensions.studies.walks import holder, numbers, runs, walk
from tests.waiting import PATIENCE, wait_until

SECONDS = 0.01
"""Time of a step of the runs that are killed."""


@pytest.fixture(scope="module")
def pool():
    with closing(LocalPool(2)) as made:
        yield made


def wait_for_run(job: Job) -> psutil.Process:
    """The process of a run that has logged a step."""
    return wait_until(lambda: holder(job.root, 1))


def test_jobs_run_side_by_side_and_equal_those_of_one_process(pool, tmp_path):
    jobs = [walk(tmp_path / "pool", seed=seed) for seed in range(5)]
    results = conduct(jobs, pool)
    assert [result.state for result in results] == ["done"] * 5
    assert [result.job for result in results] == jobs
    alone = run_job(walk(tmp_path / "alone", seed=4))
    assert numbers(results[4].folder) == numbers(alone.folder)


def test_workers_are_forked_from_a_server_that_has_torch_and_are_used_again(pool, tmp_path):
    waits = {"agent.waits_at": 20, "agent.waits_for": str(tmp_path / "go")}
    jobs = [walk(tmp_path, seed, **waits) for seed in range(4)]
    futures = [pool.submit(job) for job in jobs]
    first = wait_for_run(jobs[0])
    assert "forkserver" in " ".join(first.parent().cmdline())
    assert first.parent().memory_info().rss > 100e6  # torch is there
    assert os.getpgid(first.pid) == first.pid
    (tmp_path / "go").touch()
    assert all(future.result().state == "done" for future in futures)
    assert first.is_running()  # waits for the next job


def test_a_killed_worker_loses_its_job_and_is_replaced(pool, tmp_path):
    job = walk(tmp_path, steps=1_000_000, seconds_per_step=SECONDS)
    future = pool.submit(job)
    wait_for_run(job).kill()
    with pytest.raises(WorkerLost):
        future.result()
    assert pool.submit(walk(tmp_path / "next")).result().state == "done"


def test_closing_with_cancel_stops_what_runs_after_it_has_saved_itself(tmp_path):
    jobs = [
        walk(tmp_path, seed=seed, steps=1_000_000, seconds_per_step=SECONDS) for seed in range(2)
    ]
    pool = LocalPool(1)
    futures = [pool.submit(job) for job in jobs]
    wait_for_run(jobs[0])
    pool.close(cancel=True)
    assert futures[0].result().state == "stopped"
    assert futures[1].cancelled()
    assert (runs(tmp_path)[0] / "checkpoints").is_dir()
    pool.close()


def test_a_job_that_cannot_be_read_there_is_an_error(pool, tmp_path, monkeypatch):
    stranger = type("Stranger", (), {"__module__": __name__})
    monkeypatch.setattr(sys.modules[__name__], "Stranger", stranger, raising=False)
    future = pool.submit(walk(tmp_path, level=stranger()))
    with pytest.raises(ConfigurationError):
        future.result()


PROGRAM = f"""
import sys
from contextlib import closing
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from coach_rl.extensions.studies import LocalPool
from coach_rl.extensions.studies.conduct import conduct
from tests.extensions.studies.walks import walk

if __name__ == "__main__":
    slow = {{"steps": 1_000_000, "seconds_per_step": 0.01}}
    jobs = [walk(Path(sys.argv[1]), seed=seed, **slow) for seed in (1, 2)]
    with closing(LocalPool(2)) as pool:
        conduct(jobs, pool)
"""


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_a_signal_to_the_program_stops_all_runs_which_save_themselves(tmp_path, number):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    program = subprocess.Popen(
        [sys.executable, str(file), str(tmp_path)], start_new_session=True, stderr=subprocess.PIPE
    )
    wait_until(
        lambda: len(list(tmp_path.glob("walk/*/log.jsonl"))) == 2,
        is_possible=lambda: program.poll() is None,
    )
    workers = [holder(run.parent.parent, 1, run) for run in runs(tmp_path)]
    os.killpg(program.pid, number)
    _, said = program.communicate()
    _, alive = psutil.wait_procs([worker for worker in workers if worker], timeout=PATIENCE)
    assert not alive
    assert len(list(tmp_path.glob("walk/*/checkpoints"))) == 2
    if number == signal.SIGINT:
        assert Interrupted.__name__ in said.decode()
        assert "0 of 2 runs are done" in said.decode()
