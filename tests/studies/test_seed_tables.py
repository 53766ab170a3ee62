"""What several seeds say together, in tables."""

from dataclasses import replace
from io import StringIO

import numpy as np
from rich.console import Console

from coach_rl.studies.job_run import run_job
from coach_rl.studies.scores import read_scores
from coach_rl.studies.seed_tables import seed_tables
from coach_rl.studies.statistics import estimate
from tests.studies.walks import walk


def text_of(runs):
    console = Console(file=StringIO(), width=120)
    for table in seed_tables(runs):
        console.print(table)
    return console.file.getvalue()


def some_run(tmp_path, **final):
    return replace(read_scores(run_job(walk(tmp_path)).folder), final=final)


def test_mean_deviation_and_interquartile_mean_over_seeds(tmp_path):
    run = some_run(tmp_path)
    scores = [100.0, 200.0, 300.0, 1000.0]
    runs = [
        replace(run, seed=seed, final={"reward_mean": score}) for seed, score in enumerate(scores)
    ]
    text = text_of(runs)
    interval = estimate(np.array(scores))
    assert "400.00" in text  # mean
    assert "408.25" in text  # deviation: sqrt((300² + 200² + 100² + 600²) / 3)
    assert "250.00" in text  # (200 + 300) / 2
    assert f"({interval.low:,.2f} to {interval.high:,.2f})" in text
    assert "success" not in text


def test_success_and_each_level_that_has_goals(tmp_path):
    run = some_run(
        tmp_path,
        **{
            "reward_mean": -3.0,
            "success_rate": 0.5,
            "top/goal_share": 0.0,
            "top/distance": 0.0,
            "low/goal_share": 0.25,
            "low/distance": 0.1,
        },
    )
    text = text_of([run])
    assert "50.0%" in text
    assert "low reaches its goal" in text
    assert "25.0%" in text
    assert "top" not in text
    assert "Over one seed" in text
    assert " to " not in text  # no interval


def test_a_score_that_is_not_finite_is_said(tmp_path):
    run = some_run(tmp_path, reward_mean=float("nan"))
    assert "not finite" in text_of([run, run])
