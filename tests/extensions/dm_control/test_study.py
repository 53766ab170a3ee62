"""The study of the Control Suite trains in parts, resumes exactly, and skips what has a result."""

import json

import pytest

from benchmarks.studies import dm_control


@pytest.mark.parametrize("name", dm_control.JOBS)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path, monkeypatch):
    monkeypatch.setattr(dm_control, "RESULTS", tmp_path)
    assert not dm_control.is_done(name)
    parameters = dm_control.JOBS[name].parameters()
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert dm_control.is_done(name)
    parameters["experiment"]["num_envs"] = 3
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert not dm_control.is_done(name)


def test_jobs_with_and_without_shifts_differ_in_nothing_else():
    with_shifts, without = (
        dm_control.JOBS[f"pixels_{kind}_seed0"].parameters() for kind in ("shifts", "plain")
    )
    assert with_shifts["experiment"]["agent"]["memory"].pop("parts")
    assert not without["experiment"]["agent"]["memory"].pop("parts")
    assert with_shifts == without
    assert 8 * dm_control.JOBS["pixels_shifts_seed0"].steps == 100_000


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    panel = {"heatup": 50, "batch": 8, "layers": (8,), "evaluation_interval": 100}
    job = dm_control.Job(
        preset="DMControl_SAC",
        level="cartpole-balance",
        seed=0,
        steps=1_200,
        repeat=10,
        panel=panel,
    )
    monkeypatch.setattr(dm_control, "JOBS", {"short": job})
    monkeypatch.setattr(dm_control, "EPISODES", 2)
    folder = dm_control.train("short", tmp_path, 600.0)
    result = dm_control.result_of("short", folder)
    assert [point["frames"] for point in result["curve"]][:2] == [1_000, 2_000]
    assert result["final"]["episodes"] == 2
    assert result["parameters"] == job.parameters()
    assert dm_control.train("short", tmp_path, 600.0) == folder
