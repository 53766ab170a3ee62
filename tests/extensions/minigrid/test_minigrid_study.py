"""The study of MiniGrid skips what has a result, and writes the results of its runs."""

import json

import pytest

from benchmarks.studies import minigrid


@pytest.mark.parametrize("name", minigrid.JOBS)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path, monkeypatch):
    monkeypatch.setattr(minigrid, "RESULTS", tmp_path)
    assert not minigrid.is_done(name)
    parameters = minigrid.JOBS[name].parameters()
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert minigrid.is_done(name)
    parameters["experiment"]["num_envs"] = 3
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert not minigrid.is_done(name)


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    panel = {"rollout": 64, "minibatch": 32, "epochs": 1, "evaluation_interval": 128, "units": 8}
    job = minigrid.Job(level="Empty-5x5", seed=0, steps=256, panel=panel)
    monkeypatch.setattr(minigrid, "JOBS", {"short": job})
    monkeypatch.setattr(minigrid, "EPISODES", 2)
    folder = minigrid.train("short", tmp_path, 600.0)
    result = minigrid.result_of("short", folder)
    assert [point["steps"] for point in result["greedy_curve"]] == [128, 256]
    assert result["final"]["greedy"]["episodes"] == result["final"]["sampled"]["episodes"] == 2
    assert result["parameters"] == job.parameters()
    assert minigrid.train("short", tmp_path, 600.0) == folder
