"""The study of Pong skips what has a result, and writes the results of its runs."""

import pytest

from benchmarks.studies import atari_pong
from tests.extensions.single_runs import check_skipped, short_result


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", atari_pong.STUDY.jobs)
def test_result_with_the_same_parameters_is_skipped(name, tmp_path):
    check_skipped(atari_pong.STUDY, name, tmp_path)


@pytest.mark.slow
def test_study_of_a_short_run_writes_its_result(tmp_path, monkeypatch):
    monkeypatch.setattr(atari_pong, "EPISODES", 2)
    panel = {"rollout": 64, "minibatch": 32, "epochs": 1, "evaluation_interval": 128}
    job = atari_pong.job("Atari_PPO", 0, 256, **panel)
    result = short_result(atari_pong.STUDY, job, tmp_path)
    assert [point["frames"] for point in result["curve"]] == [512, 1024]
    assert result["final"]["greedy"]["episodes"] == result["final"]["sampled"]["episodes"] == 2
    assert result["final"]["greedy"]["human_normalised"] < 1
