import numpy as np

from coach_rl.studies.curves import group_curve
from coach_rl.studies.scores import read_scores
from coach_rl.studies.statistics import mean
from tests.studies.written_runs import record, write_run


def run(folder, seed, rewards):
    log = "".join(
        record("evaluation", step, {"evaluation/reward_mean": reward})
        for step, reward in rewards.items()
    )
    return read_scores(write_run(folder / str(seed), seed=seed, log=log))


def two(folder, rewards, others):
    """A run, and two with the same other rewards, so that there are enough for an interval."""
    return [run(folder, 0, rewards), run(folder, 1, others), run(folder, 2, others)]


def curve(runs, axis="steps"):
    return group_curve(runs, metric="reward_mean", axis=axis, statistic=mean)


def test_runs_are_averaged_at_each_evaluation(tmp_path):
    found = curve(two(tmp_path, {10: 1, 20: 3}, {10: 4, 20: 6}))
    assert found.where.tolist() == [10, 20]
    assert found.value.tolist() == [3, 5]
    assert found.seeds.tolist() == [3, 3]
    assert found.each.tolist() == [[1, 4, 4], [3, 6, 6]]
    assert (found.low < found.value).all()


def test_between_evaluations_lines_are_straight_and_end_with_the_run(tmp_path):
    found = curve(two(tmp_path, {10: 1, 30: 3}, {20: 5}))
    assert found.where.tolist() == [10, 20, 30]
    assert found.value.tolist() == [1, (2 + 5 + 5) / 3, 3]
    assert found.seeds.tolist() == [1, 3, 1]
    assert np.isnan(found.low).tolist() == [True, False, True]


def test_hours_are_a_grid_over_all_runs(tmp_path):
    found = curve([run(tmp_path, 0, {100_000: 1, 200_000: 2})], axis="hours")
    assert np.allclose(found.where[[0, -1]], [1.0, 2.0])
    assert np.allclose(found.value, found.where)


def test_runs_without_the_metric_have_no_curve(tmp_path):
    assert curve([run(tmp_path, 0, {})]) is None
