"""Many jobs taken to their end: what fails, what is lost, what is done already, what is stopped."""

import os
import signal
from concurrent.futures import Future
from dataclasses import replace

import pytest

from coach_rl.extensions.studies.conduct import MOST_LOSSES, conduct
from coach_rl.extensions.studies.job import run_job
from coach_rl.sessions.stop_requests import Interrupted
from tests.extensions.studies.walks import Here, runs, walk


def test_one_run_that_fails_does_not_end_the_others(tmp_path):
    jobs = [walk(tmp_path, seed=1), walk(tmp_path, seed=2, fail_at=30), walk(tmp_path, seed=3)]
    results = conduct(jobs, Here())
    assert [result.state for result in results] == ["done", "failed", "done"]
    assert results[1].error.startswith("the loss is NaN")


def test_what_is_done_is_not_given_out_again(tmp_path):
    jobs = [walk(tmp_path, seed=seed) for seed in range(3)]
    first = run_job(jobs[1])
    here = Here()
    results = conduct(jobs, here)
    assert here.given == [jobs[0], jobs[2]]
    assert results[1] == first
    again = Here()
    assert conduct(jobs, again) == results
    assert again.given == []


def test_a_job_that_is_there_twice_is_made_once(tmp_path):
    job = walk(tmp_path)
    here = Here()
    results = conduct([job, replace(job, labels={}), job], here)
    assert here.given == [job]
    assert [result.state for result in results] == ["done"] * 3


def test_what_does_not_resolve_is_not_given_out(tmp_path):
    here = Here()
    (result,) = conduct([walk(tmp_path, lerning_rate=1)], here)
    assert result.state == "failed"
    assert "did you mean 'learning_rate'?" in result.error
    assert here.given == []


def test_a_lost_job_is_given_out_again(tmp_path):
    here = Here(losing=lambda _job, times: times < 3)
    (result,) = conduct([walk(tmp_path)], here)
    assert result.state == "done"
    assert len(here.given) == 3


def test_a_job_that_is_lost_again_and_again_has_failed(tmp_path):
    here = Here(losing=lambda job, _times: job.task.seed == 1)
    results = conduct([walk(tmp_path, seed=1), walk(tmp_path, seed=2)], here)
    assert [result.state for result in results] == ["failed", "done"]
    assert results[0].error == (
        f"abandoned after {MOST_LOSSES} attempts without a new checkpoint: its process was killed "
        "by SIGKILL"
    )
    assert len(here.given) == MOST_LOSSES + 1


def test_a_job_that_gets_further_each_time_may_be_lost_any_number_of_times(tmp_path):
    job, most = walk(tmp_path, signal_at=45), 2 * MOST_LOSSES
    checkpoints = run_job(job).folder / "checkpoints"

    def losing(_job, times):
        """Each time there is a later checkpoint; these are empty, and gone in the end."""
        if times > 1:
            (checkpoints / f"step_{99 + times}").rmdir()
        if times <= most:
            (checkpoints / f"step_{100 + times}").mkdir()
        return times <= most

    here = Here(losing)
    (result,) = conduct([job], here)
    assert result.state == "done"
    assert len(here.given) == most + 1


def test_a_run_stopped_by_a_signal_to_its_process_is_resumed(tmp_path):
    here = Here()
    (result,) = conduct([walk(tmp_path, signal_at=45)], here)
    assert len(here.given) == 2
    assert (result.state, runs(tmp_path)) == ("done", [result.folder])


def test_an_error_of_the_executor_is_the_jobs(tmp_path):
    class Broken(Here):
        def submit(self, job):
            future = Future()
            future.set_exception(ValueError("no such queue"))
            return future

    (result,) = conduct([walk(tmp_path)], Broken())
    assert result.state == "failed"
    assert "no such queue" in result.error


def test_a_signal_stops_all_and_says_how_to_go_on(tmp_path):
    class Waiting(Here):
        def submit(self, job):
            if job.task.seed == 1:
                return super().submit(job)
            os.kill(os.getpid(), signal.SIGTERM)
            raise AssertionError("not reached")

    executor, seen, said = Waiting(), [], []
    jobs = [walk(tmp_path, seed=seed) for seed in (1, 2, 3)]
    with pytest.raises(Interrupted) as caught:
        conduct(jobs, executor, on_change=seen.append, announce=said.append)
    assert caught.value.signal == signal.SIGTERM
    assert executor.closed == [True]
    assert [status.state for status in seen[-1]] == ["done", "stopped", "stopped"]
    assert len(said) == 1


def test_each_change_is_told(tmp_path):
    seen = []
    conduct(
        [walk(tmp_path, seed=1)], Here(losing=lambda _, times: times == 1), on_change=seen.append
    )
    told = [(status.state, status.losses) for statuses in seen for status in statuses]
    assert told[0] == ("waiting", 0)
    assert told[-1] == ("done", 1)
    assert seen[-1][0].folder == runs(tmp_path)[0]
