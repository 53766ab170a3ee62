"""The number of threads belongs to a run: it is remembered, and going on takes it up."""

import os
import signal
import warnings
from pathlib import Path
from typing import Any

import pytest

from coach_rl.extensions.testing.states import assert_same_state
from tests.cli.commands import coach, only_run
from tests.small_runs import FAKE, log_of, manifest_of, state_of

LARGE = Path(__file__).with_name("large_batch_preset.py")
ROUND = 40_960
FLAGS = ("-ntb", "-c", "--plain")


def train(name: str, *words: Any, exit_code: int = 0) -> Path:
    assert coach("-p", LARGE, *FLAGS, "-e", name, *words) == exit_code
    return only_run(name)


def task_of(run: Path) -> Any:
    return manifest_of(run)["task"]


def learned(run: Path) -> list[Any]:
    return [line["scalars"] for line in log_of(run) if line["kind"] == "train"]


def test_two_threads_stopped_by_sigterm_and_resumed_equal_never_stopped(capsys):
    whole, one = train("whole", "--threads", 2), train("one", "--steps", ROUND)
    assert learned(one) != learned(whole)[:1], "threads change no number here"
    words = ("--threads", 2, "-cp", f"sigterm_at={ROUND}")
    stopped = train("stopped", *words, exit_code=128 + signal.SIGTERM)
    assert state_of(stopped)["training"]["clock"]["environment_steps"] == ROUND
    capsys.readouterr()
    assert coach("-crd", stopped, "-ntb", "--plain") == 0
    assert capsys.readouterr().err == ""
    assert_same_state(state_of(stopped), state_of(whole))
    assert log_of(stopped, ["checkpoint"]) == log_of(whole, ["checkpoint"])
    assert task_of(stopped)["threads"] == 2


@pytest.mark.filterwarnings("ignore::coach_rl.core.errors.CoachWarning")
def test_a_fork_has_the_threads_of_its_run_unless_others_are_given():
    assert coach("-p", FAKE, *FLAGS, "-e", "parent", "--steps", 20, "-cp", "threads=2") == 0
    run = only_run("parent")
    for name, words, threads in (
        ("kept", (), 2),
        ("changed", ("-cp", "threads=3"), 3),
        ("flag", ("-cp", "threads=3", "--threads", 1), 1),
    ):
        given = ("--as", name, "-ntb", "--plain", "--steps", 40, *words)
        assert coach("fork", run, *given) == 0
        assert task_of(only_run(name))["threads"] == threads


def test_resuming_with_other_threads_warns_in_one_line(capsys):
    assert coach("-p", FAKE, "-ntb", "--steps", 20, "--threads", 2) == 0
    run = only_run()
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert coach("-crd", run, "-ntb", "--plain", "--steps", 40, "--threads", 1) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"coach: warning: {os.path.abspath(run)} was made with threads 2, now 1; its numbers may "
        "differ from those of a run that was never stopped"
    )
    assert task_of(run)["threads"] == 1
