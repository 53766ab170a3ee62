"""Curves of numbers of the logs, for `coach plot --metric train/entropy`."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from coach_rl.cli.main import main
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError
from coach_rl.extensions.studies.logged import MOST_POINTS, with_logged
from coach_rl.extensions.studies.runs import find_runs
from tests.extensions.studies.written_runs import record, write_run
from tests.refusals import check_refused


def trained(step, *, level="main", agent="agent", **scalars):
    """A record of an agent's training."""
    line = json.loads(record("train", step, level=level, phase="train"))
    named = {f"train/{name}": value for name, value in scalars.items()}
    return json.dumps({**line, "agent": agent, "scalars": named}) + "\n"


def frame_of(folder: Path, *logs: str):
    for seed, log in enumerate(logs):
        write_run(folder / "group" / f"run{seed}", seed=seed, log=log)
    return find_runs([folder / "group"])[0]


def test_logged_number_is_drawn_from_its_records(tmp_path):
    log = trained(100, entropy=2.0) + trained(200, loss=1.0) + trained(300, entropy=1.0)
    frame = with_logged(frame_of(tmp_path, log + record("final_evaluation", 300)), "train/entropy")
    curve = frame.runs[0].curve
    np.testing.assert_array_equal(curve.steps, [100, 300])
    np.testing.assert_allclose(curve.hours, [0.001, 0.003])
    np.testing.assert_array_equal(curve.metrics["train/entropy"], [2.0, 1.0])


def test_many_records_are_averaged_over_parts_of_the_run(tmp_path):
    log = "".join(trained(step, loss=float(step)) for step in range(1, 10 * MOST_POINTS + 1))
    curve = with_logged(frame_of(tmp_path, log), "train/loss").runs[0].curve
    assert len(curve) == MOST_POINTS
    np.testing.assert_allclose(curve.metrics["train/loss"][:2], [5.5, 15.5])  # of 1..10, 11..20
    np.testing.assert_allclose(curve.steps, np.round(curve.metrics["train/loss"]))


def test_records_at_one_step_are_averaged(tmp_path):
    log = trained(100, loss=1.0) + trained(100, loss=3.0) + trained(100, loss=None)
    curve = with_logged(frame_of(tmp_path, log), "train/loss").runs[0].curve
    np.testing.assert_array_equal(curve.metrics["train/loss"], [2.0])


@pytest.mark.parametrize("metric", ["low/train/loss", "a/train/loss", "low/a/train/loss"])
def test_number_of_one_level_is_chosen_by_its_name(tmp_path, metric):
    log = trained(100, level="top", agent="b", loss=1.0) + trained(
        100, level="low", agent="a", loss=3.0
    )
    curve = with_logged(frame_of(tmp_path, log), metric).runs[0].curve
    np.testing.assert_array_equal(curve.metrics[metric], [3.0])


BOTH = trained(1, level="top", loss=1.0) + trained(1, level="low", loss=1.0)


@pytest.mark.parametrize(
    ("log", "metric", "kind", "message"),
    [
        (BOTH, "train/loss", ConfigurationError, "give one of low/agent/train/loss, top/agent"),
        (BOTH, "train/los", UnknownNameError, "unknown metric 'train/los'; did you mean"),
        ('{"kind": 3}\n', "train/loss", CheckpointError, "line 1 is no record"),
    ],
)
def test_with_logged_invalid_input_error(tmp_path, log, metric, kind, message):
    write_run(tmp_path / "group" / "run", log=BOTH)
    frame = find_runs([tmp_path / "group"])[0]
    (tmp_path / "group" / "run" / "log.jsonl").write_text(log)
    check_refused(lambda: with_logged(frame, metric), kind, message)


def test_plot_of_a_logged_number(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    frame_of(tmp_path, *(trained(100, entropy=seed) + trained(200, entropy=0) for seed in (1, 3)))
    assert main(["plot", "group", "--metric", "train/entropy"]) == 0
    with Path("plots/curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["steps"], row["iqm"]) for row in rows] == [("100", "2.0"), ("200", "0.0")]
    assert not Path("plots/seeds.png").exists()
    assert main(["plot", "group", "--metric", "train/entropy", "--at", "last"]) == 2
    assert "--at is about evaluations" in capsys.readouterr().err
