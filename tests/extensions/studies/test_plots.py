import csv
import os
import subprocess
import sys

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.studies.comparison import possible_comparisons
from coach_rl.extensions.studies.logged import with_logged
from coach_rl.extensions.studies.plots import Plots, group_curve
from coach_rl.extensions.studies.runs import find_runs, group_scores
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.extensions.studies.statistics import mean
from tests.extensions.studies.written_runs import record, write_run, write_seeds

PICTURES = ("curves", "seeds", "level_low", "profiles", "improvement")


def drawn(folder, frame, **settings):
    scored, _ = group_scores(frame, metric="reward_mean")
    comparisons = possible_comparisons(scored, None, metric="reward_mean")
    plots = Plots(frame=frame, metric="reward_mean", **settings)
    return plots.write(folder, scored=scored, comparisons=comparisons, notes=["mind the gap"])


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    folders = [write_seeds(folder / name, scores) for name, scores in SCORES.items()]
    return find_runs(folders)[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory, frame):
    return drawn(tmp_path_factory.mktemp("pictures") / "plots", frame, statistic="mean")


SCORES = {"a": [5.0, 6.0, 7.0], "b": [1.0, 2.0, 4.0]}


def test_pictures_tables_and_page_are_written(files):
    folder = files[0].parent
    names = {f"{name}.{ending}" for name in PICTURES for ending in ("png", "svg")}
    assert {file.name for file in files} == {*names, "curves.csv", "runs.csv", "plots.md"}
    assert set(folder.iterdir()) == set(files)
    for file in files:
        start = file.read_bytes()[:100]
        assert start.startswith(b"\x89PNG") or file.suffix != ".png"
        assert b"<?xml" in start or file.suffix != ".svg"
    page = (folder / "plots.md").read_text()
    assert "Note: mind the gap." in page
    assert "![curves](curves.png)" in page
    assert "| a | point | 3 | 6 | 1 |" in page


def test_tables_and_page_show_names_as_text(tmp_path):
    groups = [
        write_seeds(tmp_path / name, [1.0, 2.0, 4.0, 5.0, 7.0], level="<b>task")
        for name in ("<script>a", "=1+1")
    ]
    *_, page = drawn(tmp_path / "plots", find_runs(groups)[0])
    assert "<" not in page.read_text()
    assert "&lt;script>a" in page.read_text()
    with (page.parent / "runs.csv").open(newline="") as file:
        assert {row["group"] for row in csv.DictReader(file)} == {"<script>a", "'=1+1"}


def test_plots_tables_have_drawn_numbers(files):
    folder = files[0].parent
    with (folder / "curves.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "reward_mean"]
    found = [(row["group"], row["steps"], row["seeds"], row["mean"]) for row in rows]
    assert found[:2] == [("a", "1000", "3", "3.0"), ("a", "2000", "3", "6.0")]
    with (folder / "runs.csv").open(newline="") as file:
        assert [float(row["reward_mean"]) for row in csv.DictReader(file)] == [
            *SCORES["a"],
            *SCORES["b"],
        ]


def test_plots_legend_names_groups_and_seeds(frame):
    plots = Plots(frame=frame, metric="reward_mean")
    figure = plots.curves("reward_mean")
    (axes,) = figure.axes
    labelled = {
        line.get_label(): line.get_color() for line in axes.lines if line.get_label()[0] != "_"
    }
    assert list(labelled) == ["a (3 seeds)", "b (3 seeds)"]
    assert len(set(labelled.values())) == 2
    assert axes.get_xlabel() == "environment steps"
    assert axes.get_ylabel() == "reward of an episode"
    assert axes.lines[1].get_ydata().tolist() == [3.0, 6.0]


def test_group_curve_one_seed_no_interval(tmp_path):
    frame, _ = find_runs([write_seeds(tmp_path / "alone", [3.0])])
    files = drawn(tmp_path / "plots", frame, axis="hours")
    assert "improvement.png" not in {file.name for file in files}
    with (tmp_path / "plots" / "curves.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["seeds"], row["low"], row["high"]) == ("1", "", "")


@pytest.mark.slow
def test_same_runs_same_picture(tmp_path, frame):
    first = {file.name: file.read_bytes() for file in drawn(tmp_path / "1", frame)}
    again = {file.name: file.read_bytes() for file in drawn(tmp_path / "2", frame)}
    assert first == again


def test_plots_unwritable_folder_error(tmp_path, frame):
    (tmp_path / "plots").write_text("a file")
    with pytest.raises(ConfigurationError):
        drawn(tmp_path / "plots", frame)


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


def test_group_curve_mean_at_each_evaluation(tmp_path):
    found = curve(two(tmp_path, {10: 1, 20: 3}, {10: 4, 20: 6}))
    assert found.where.tolist() == [10, 20]
    assert found.value.tolist() == [3, 5]
    assert found.seeds.tolist() == [3, 3]
    assert found.each.tolist() == [[1, 4, 4], [3, 6, 6]]
    assert (found.low < found.value).all()


def test_group_curve_interpolates_until_run_ends(tmp_path):
    found = curve(two(tmp_path, {10: 1, 30: 3}, {20: 5}))
    assert found.where.tolist() == [10, 20, 30]
    assert found.value.tolist() == [1, (2 + 5 + 5) / 3, 3]
    assert found.seeds.tolist() == [1, 3, 1]
    assert np.isnan(found.low).tolist() == [True, False, True]


def test_group_curve_hours_common_grid(tmp_path):
    found = curve([run(tmp_path, 0, {100_000: 1, 200_000: 2})], axis="hours")
    assert np.allclose(found.where[[0, -1]], [1.0, 2.0])
    assert np.allclose(found.value, found.where)


def test_group_curve_hours_keep_runs_between_two_points(tmp_path):
    runs = [
        run(tmp_path, 0, {100_000: 1, 1_000_000: 2}),
        run(tmp_path, 1, {500_123: 7}),
        run(tmp_path, 2, {600_456: 3, 600_789: 4}),
    ]
    found = curve(runs, axis="hours")
    known = np.isfinite(found.each)
    assert known.sum(axis=0)[1:].tolist() == [1, 2]
    assert found.each[known[:, 1], 1] == [7]
    assert found.seeds.max() == 2


@pytest.mark.parametrize("seeds", [2, 5])
def test_curves_runs_of_one_evaluation_are_drawn_as_points(tmp_path, seeds):
    folder = tmp_path / "a"
    for seed in range(seeds):
        run(folder, seed, {1000 + 10 * seed: float(seed)})
    frame, _ = find_runs([folder])
    (axes,) = Plots(frame=frame, metric="reward_mean", axis="hours").curves("reward_mean").axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert {height for line in points for height in line.get_ydata()} == {*map(float, range(seeds))}


def test_curves_of_a_rate_that_is_no_share_fill_the_axis(tmp_path):
    log = "".join(record("train", step, {"train/learning_rate": 1e-6 * step}) for step in (1, 9))
    write_run(tmp_path / "a" / "run", log=log)
    frame = with_logged(find_runs([tmp_path / "a"])[0], "train/learning_rate")
    (axes,) = Plots(frame=frame, metric="train/learning_rate").curves("train/learning_rate").axes
    assert axes.get_ylim()[1] < 2e-5


def test_group_curve_missing_metric_none(tmp_path):
    assert curve([run(tmp_path, 0, {})]) is None


def test_pictures_need_no_backend_that_a_notebook_has_set():
    code = "from coach_rl.extensions.studies.plots import drawing\nwith drawing(): pass"
    environment = os.environ | {"MPLBACKEND": "module://of_another_environment"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
