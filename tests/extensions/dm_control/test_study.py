"""The study of the Control Suite skips what has a result, and writes the results of its runs."""

import pytest

from benchmarks.studies import dm_control
from benchmarks.studies.single_runs import Job
from tests.extensions.single_runs import check_skipped, short_result

JOBS = dm_control.STUDY.jobs


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", JOBS)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path):
    check_skipped(dm_control.STUDY, name, tmp_path)


def test_jobs_with_and_without_shifts_differ_in_nothing_else():
    with_shifts, without = (
        JOBS[f"pixels_{kind}_seed0"].parameters() for kind in ("shifts", "plain")
    )
    assert with_shifts["experiment"]["agent"]["memory"].pop("parts")
    assert not without["experiment"]["agent"]["memory"].pop("parts")
    assert with_shifts == without
    assert 8 * JOBS["pixels_shifts_seed0"].panel["steps"] == 100_000


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    monkeypatch.setattr(dm_control, "EPISODES", 2)
    monkeypatch.setitem(dm_control.PUBLISHED, "cartpole-balance", {})
    panel = {"heatup": 50, "batch": 8, "layers": (8,), "evaluation_interval": 100}
    panel |= {"level": "cartpole-balance", "steps": 1_200, "action_repeat": 10}
    job = Job(preset="DMControl_SAC", seed=0, panel=panel)
    result = short_result(dm_control.STUDY, job, tmp_path)
    assert [point["frames"] for point in result["curve"]][:2] == [1_500, 2_500]  # after heat-up
    assert result["final"]["episodes"] == 2
