"""The study of Pong trains in parts, resumes exactly, and skips what has a result."""

import json

import pytest

from benchmarks.studies import atari_pong


@pytest.mark.parametrize("name", atari_pong.JOBS)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path, monkeypatch):
    monkeypatch.setattr(atari_pong, "RESULTS", tmp_path)
    assert not atari_pong.is_done(name)
    parameters = atari_pong.JOBS[name].parameters()
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert atari_pong.is_done(name)
    parameters["experiment"]["num_envs"] = 3
    (tmp_path / f"{name}.json").write_text(json.dumps({"parameters": parameters}))
    assert not atari_pong.is_done(name)


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    panel = {"rollout": 64, "minibatch": 32, "epochs": 1, "evaluation_interval": 128}
    job = atari_pong.Job(preset="Atari_PPO", seed=0, steps=256, panel=panel)
    monkeypatch.setattr(atari_pong, "JOBS", {"short": job})
    monkeypatch.setattr(atari_pong, "EPISODES", 2)
    folder = atari_pong.train("short", tmp_path, 600.0)
    result = atari_pong.result_of("short", folder)
    assert [point["frames"] for point in result["curve"]] == [512, 1024]
    assert result["final"]["greedy"]["games"] == result["final"]["sampled"]["games"] == 2
    assert result["parameters"] == job.parameters()
    assert atari_pong.train("short", tmp_path, 600.0) == folder
