"""The study of MiniGrid skips what has a result, and writes the results of its runs."""

import pytest

from benchmarks.studies import minigrid
from benchmarks.studies.single_runs import Job
from tests.extensions.single_runs import check_skipped, short_result


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", minigrid.STUDY.jobs)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path):
    check_skipped(minigrid.STUDY, name, tmp_path)


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    monkeypatch.setattr(minigrid, "EPISODES", 2)
    panel = {"rollout": 64, "minibatch": 32, "epochs": 1, "evaluation_interval": 128, "units": 8}
    panel |= {"level": "Empty-5x5", "steps": 256}
    job = Job(preset="MiniGrid_PPO", seed=0, panel=panel)
    result = short_result(minigrid.STUDY, job, tmp_path)
    assert [point["steps"] for point in result["greedy_curve"]] == [128, 256]
    assert result["final"]["greedy"]["episodes"] == result["final"]["sampled"]["episodes"] == 2
    assert 0 <= result["final"]["sampled"]["success_rate"] <= 1
