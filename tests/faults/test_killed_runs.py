"""A share of the killed runs; `make faults` makes all of them."""

import numpy as np
import pytest
from killed_processes import Moment, moments
from killed_runs import (
    MARK,
    PAGE,
    RESULTS,
    Outcome,
    begin,
    counted,
    difference,
    in_words,
    killed_and_resumed,
    log_line,
    markdown,
    runs,
    story,
    with_sentence,
)

from coach_rl.configuration.presets import shipped_presets

TABLE = RESULTS.read_text().split(MARK)[1]
OFTEN = ("CartPole_PPO", "Pendulum_SAC", "Pendulum_HAC")
"""Runs of which one is drawn."""


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "name",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in runs()],
)
def test_a_killed_run_resumes_to_what_it_would_have_been(name, tmp_path):
    run = runs()[name]
    ended = begin(run, tmp_path / "whole")
    assert ended.code == 0, ended.output
    whole = story(tmp_path / "whole")
    for kind, moment in moments(ended, np.random.default_rng(1)).items():
        outcome = killed_and_resumed(name, run, kind, [moment], tmp_path / kind, whole)
        assert not outcome.difference, outcome


def test_a_moment_behind_the_end_kills_nothing(tmp_path):
    run = runs()["CartPole_PPO"]
    begin(run, tmp_path / "whole")
    outcome = killed_and_resumed(
        "x", run, "late", [Moment("operation", 1e9)], tmp_path / "late", story(tmp_path / "whole")
    )
    assert (outcome.kills, outcome.difference) == (0, "")


def test_a_difference_is_noticed():
    line = '{"kind": "train", "wall_seconds": 1.0, "scalars": {"loss": 0.5, "time/x": 2}}'
    other = line.replace("0.5", "0.25")
    assert difference({"log": [log_line(line)]}, {"log": [log_line(other)]}).startswith("/log/0")
    assert not difference(log_line(line), log_line(line.replace("1.0", "7.0")))
    planned = line.replace("loss", "level/planning_seconds")
    assert not difference(log_line(planned), log_line(planned.replace("0.5", "0.25")))
    assert difference({"log": [1, 2]}, {"log": [1]})
    assert difference({"a": 1}, {"b": 1})


def test_table_has_a_row_for_every_shipped_preset():
    _run, *columns = TABLE.strip().splitlines()[0].strip("| ").split(" | ")
    made = {name.partition(",")[0] for name in counted(TABLE, columns)}
    assert not shipped_presets().keys() - made


def test_page_has_the_sums_of_the_table():
    page = PAGE.read_text()
    assert with_sentence(page, in_words(TABLE)) == page
    assert with_sentence(page, in_words(TABLE.replace("| all | ", "| all | 9"))) != page


def test_rows_of_runs_that_are_not_made_again_stay_in_the_table():
    def outcome(name, kills, difference=""):
        return Outcome(name=name, kind="SIGHUP", kills=kills, difference=difference)

    before = markdown([outcome("Pendulum_PPO", 1), outcome("Acrobot_PPO", 2, "/state")])
    after = markdown([outcome("Acrobot_PPO", 4), outcome("Mujoco_PPO", 8, "/state")], before)
    assert after.splitlines() == [
        "| run | SIGHUP | different |",
        "| --- | ---: | ---: |",
        "| Acrobot_PPO | 4 | 0 |",
        "| Mujoco_PPO | 8 | 1 |",
        "| Pendulum_PPO | 1 | 0 |",
        "| all | 13 | 1 |",
    ]
