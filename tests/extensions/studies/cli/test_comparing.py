"""`coach compare`, `coach plot` and `coach runs`."""

import os
import sys

import pytest

from coach_rl.cli.main import main
from coach_rl.runs.lock import locked
from tests.extensions.studies.written_runs import LOG, write_run, write_seeds


@pytest.fixture(autouse=True)
def experiments(tmp_path, monkeypatch, somewhere_else):
    monkeypatch.delenv("COLUMNS", raising=False)
    write_seeds(tmp_path / "experiments" / "good", [11, 12, 13, 14, 15])
    write_seeds(tmp_path / "experiments" / "bad", [1, 2, 3, 4, 5])
    return tmp_path / "experiments"


def coach(capsys, *words):
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_compare_says_by_how_much(capsys):
    code, out, _ = coach(capsys, "compare", "experiments/good", "experiments/bad")
    assert code == 0
    assert out.startswith("Baseline: bad, the last group; --baseline NAME chooses another\n")
    assert "On point: good is higher than bad by 10 (95 % interval " in out
    assert "reward_mean of the evaluation at a run's end" in out


def test_compare_takes_the_folders_in_one_and_a_baseline(capsys):
    code, out, _ = coach(capsys, "compare", "experiments", "--baseline", "good", "--markdown")
    assert code == 0
    assert out.startswith("Baseline: good\n")
    assert "bad is lower than good by 10" in out
    assert "| bad | point | 5 | 3 | 1.58 | 3 |" in out


def test_compare_takes_another_moment_and_metric(capsys):
    words = ["compare", "experiments", "--metric", "low/goal_share", "--at", "2_000"]
    code, out, _ = coach(capsys, *words)
    assert code == 0
    assert "low/goal_share after 2,000 environment steps" in out
    assert "no difference is established between bad and good with 5 and 5 seeds" in out


def test_report_takes_folders_and_names_the_baseline_first(capsys, tmp_path):
    for seed in range(2):
        write_run(
            tmp_path / "experiments" / "odd" / f"seed{seed}",
            seed=seed,
            panel={"rate": 0.1 * (seed + 1)},
            command=["coach", "-p", "A", "--seed", str(seed)],
            summary={"evaluation": {"reward_mean": 3.0}},
        )
    code, out, _ = coach(capsys, "report", "experiments/odd", "experiments/good", "experiments/bad")
    assert code == 0
    assert out.startswith("baseline:   bad, the last group; --baseline NAME chooses another\n")
    assert "note:       odd holds runs with different settings: rate 0.1 with seed 0, 0.2" in out
    page = (tmp_path / "report.html").read_text()
    assert "<p>Baseline: bad. The others are compared with it.</p>" in page
    assert "Good is higher than bad by 10 (95 % interval" in page
    assert "odd holds runs with different settings" in page
    assert "<code>coach -p A --seed 1</code>" in page
    assert "study" not in page.lower()
    code, out, _ = coach(capsys, "report", "experiments", "--baseline", "good", "--to", "x.html")
    assert (code, out.splitlines()[0]) == (0, "baseline:   good")
    assert "Bad is lower than good by 10" in (tmp_path / "x.html").read_text()


def test_plot_writes_pictures(capsys, tmp_path):
    code, out, _ = coach(capsys, "plot", "experiments", "--to", "pictures")
    assert code == 0
    assert "Written to pictures: curves.png" in out
    assert (tmp_path / "pictures" / "improvement.svg").exists()


def test_plot_draws_curves_of_runs_that_are_not_finished(capsys, tmp_path):
    write_run(tmp_path / "new" / "run", log=LOG)
    code, out, _ = coach(capsys, "plot", "new")
    assert code == 0
    assert "only curves are drawn" in out
    assert (tmp_path / "plots" / "curves.png").exists()
    assert not (tmp_path / "plots" / "profiles.png").exists()


def test_runs_are_listed(capsys, experiments):
    write_run(experiments / "new", seed=9, log=LOG)
    code, out, _ = coach(capsys, "runs", "--sort", "last")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == 1 + 11 + 1
    assert lines[1].startswith("good/seed4")
    assert lines[-1].startswith("11 of 11 runs, ")
    code, out, _ = coach(capsys, "runs", "experiments", "--state", "stopped")
    assert [line.split()[0] for line in out.splitlines()] == ["run", "new", "1"]


def test_a_running_run_names_its_host_and_is_not_removed(capsys, experiments):
    run = experiments / "good" / "seed0"
    with locked(run):
        _, out, _ = coach(capsys, "runs", "--state", "running")
        assert f"running on {os.uname().nodename}" in out
        code, _, err = coach(capsys, "runs", "rm", run, "--yes")
    assert code == 2
    assert "is in use by process" in err
    assert run.exists()


def test_runs_are_removed_when_the_user_agrees(capsys, experiments, monkeypatch):
    runs = [experiments / "good" / f"seed{seed}" for seed in (0, 1)]
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: "n")
    code, _, err = coach(capsys, "runs", "rm", *runs)
    assert (code, err) == (2, "coach: error: nothing is deleted\n")
    monkeypatch.setattr("builtins.input", lambda question: "y")
    code, out, _ = coach(capsys, "runs", "rm", *runs)
    assert code == 0
    assert out.splitlines()[-1].startswith("deleted 2 runs, ")
    kept = sorted(path.name for path in (experiments / "good").iterdir())
    assert kept == ["seed2", "seed3", "seed4"]
    assert coach(capsys, "runs", "rm", experiments / "bad" / "seed0", "--yes")[0] == 0
    assert not (experiments / "bad" / "seed0").exists()
