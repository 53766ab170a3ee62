import json
import os
import socket

import numpy as np
import psutil
import pytest

from coach_rl.extensions.studies.scores import later_evaluations, read_scores, runs_below
from coach_rl.runs.lock import LOCK
from tests.extensions.studies.written_runs import LOG, SUMMARY, record, write_run


def test_read_scores_finished_run(tmp_path):
    labels = {"study": "question", "variant": "two levels"}
    path = write_run(tmp_path / "run", log=LOG, summary=SUMMARY, job={"labels": labels}, seed=3)
    run = read_scores(path)
    assert (run.state, run.seed, run.level, run.preset) == ("done", 3, "point", "A")
    assert (run.experiment, run.labels) == ("trial", labels)
    assert (run.environment_steps, run.training_steps, run.episodes) == (2500, 1250, 25)
    assert run.curve.steps.tolist() == [1000, 2000]
    assert run.curve.hours == pytest.approx([0.01, 0.02])
    assert run.curve.metrics["reward_mean"].tolist() == [-3.0, -1.0]
    assert run.curve.metrics["low/goal_share"].tolist() == [0.25, 0.5]
    np.testing.assert_array_equal(run.curve.metrics["success_rate"], [np.nan, 1.0])
    assert run.final["reward_mean"] == -2.0
    assert run.final["low/goal_share"] == 0.75
    assert np.isnan(run.final["reward_std"])
    assert "success_rate" not in run.final
    assert run.final_episodes["reward"].tolist() == [-1.0, -3.0]
    assert run.steps_per_second == 80.0
    assert (run.best("reward_mean"), run.last("reward_mean")) == (-1.0, -2.0)
    assert run.last("success_rate") == 1.0
    assert (run.best("nothing"), run.last("nothing")) == (None, None)


def test_read_scores_final_has_what_only_the_log_has(tmp_path):
    scalars = {"reward_mean": -9.0, "length_mean": 70.0, "reward_iqm_low": -5.0}
    log = LOG + record(
        "final_evaluation",
        3000,
        {f"final_evaluation/{name}": of for name, of in {**scalars, "reward_mean/b": 4.0}.items()},
    )
    summary = {**SUMMARY, "env_steps": 3000}
    final = read_scores(write_run(tmp_path / "old", log=log, summary=summary)).final
    assert final["reward_mean"] == -2.0  # the summary's
    assert (final["length_mean"], final["reward_iqm_low"], final["reward_mean/b"]) == (70, -5, 4)
    own = {**SUMMARY["evaluation"], "length_mean": 71.0, "reward_mean/b": 5.0}
    summary = {**summary, "evaluation": own}
    final = read_scores(write_run(tmp_path / "new", log=log, summary=summary)).final
    assert (final["length_mean"], final["reward_mean/b"]) == (71, 5)
    assert "b" not in final
    summary = {**summary, "env_steps": 4000}  # of a later evaluation
    assert (
        "reward_iqm_low"
        not in read_scores(write_run(tmp_path / "other", log=log, summary=summary)).final
    )
    assert read_scores(write_run(tmp_path / "stopped", log=log)).final == {}


@pytest.mark.parametrize("name", ["levels", "stack"])
def test_thresholds_of_levels_with_goals_are_read(tmp_path, name):
    goals = {"threshold": [0.5, {"$float": "inf"}]}
    levels = [
        {"name": "top", "goal_space": None},
        {"name": "chooser", "goal_space": {"count": 3}},
        {"name": "low", "goal_space": goals},
    ]
    path = write_run(tmp_path / "run", parameters={name: levels})
    assert read_scores(path).thresholds == {"low": (0.5, np.inf)}


def test_read_scores_unfinished_run_whole_lines(tmp_path):
    cut = LOG[: LOG.index('"evaluation/success_rate"')]
    run = read_scores(write_run(tmp_path / "run", log=cut))
    assert run.state == "stopped"
    assert len(run.curve) == 1
    assert run.final == {}
    assert run.environment_steps == 2000


def test_read_scores_begun_run_has_no_scores(tmp_path):
    run = read_scores(write_run(tmp_path / "run"))
    assert (run.state, run.environment_steps, len(run.curve)) == ("stopped", 0, 0)
    assert run.last("reward_mean") is None


def test_read_scores_held_run_is_running(tmp_path):
    path = write_run(tmp_path / "run", log=LOG)
    mine = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "started": psutil.Process().create_time(),
    }
    (path / LOCK).write_text(json.dumps(mine))
    run = read_scores(path)
    assert run.state == "running"
    assert run.holder.host == socket.gethostname()
    (path / LOCK).write_text(json.dumps({**mine, "started": 1.0}))  # that process is gone
    assert read_scores(path).state == "stopped"


def test_run_status_silent_remote_run_stopped(tmp_path):
    path = write_run(tmp_path / "run", log=LOG)
    lock = path / LOCK
    lock.write_text(json.dumps({"process": 1, "host": "elsewhere", "started": 1.0}))
    assert read_scores(path).state == "running"
    os.utime(lock, (1.0, 1.0))
    assert read_scores(path).state == "stopped"


def test_read_scores_fault_last_is_failed(tmp_path):
    path = write_run(tmp_path / "run", log=LOG)
    (path / "faults").mkdir()
    fault = path / "faults" / "step_900.txt"
    fault.write_text("it fell\n")
    assert read_scores(path).state == "stopped"  # it was resumed, and went past that
    fault.rename(path / "faults" / "step_2500.txt")
    assert read_scores(path).state == "failed"


def test_later_evaluations_read(tmp_path):
    path = write_run(tmp_path / "run")
    (path / "evaluations").mkdir()
    document = {
        "environment_steps": 2500,
        "scalars": {"evaluation/success_rate": 0.9},
        "levels": {"low": {"evaluation_level/goal_share": 0.4}},
    }
    (path / "evaluations" / "step_2500.json").write_text(json.dumps(document))
    (found,) = later_evaluations(path)
    assert found.metrics == {"success_rate": 0.9, "low/goal_share": 0.4}
    assert (found.environment_steps, found.is_plain) == (2500, True)


def test_runs_below_any_depth(tmp_path):
    found = [write_run(tmp_path / name) for name in ("a/run", "b/c/run")]
    write_run(tmp_path / "b" / ".new-host-1" / "run")
    write_run(found[0] / "copy")  # in a run: a copy of something
    assert runs_below(tmp_path) == found
    assert runs_below(found[0]) == [found[0]]
    assert runs_below(tmp_path / "nothing") == []
