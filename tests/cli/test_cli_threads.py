"""The number of threads belongs to a run: it is remembered, and going on takes it up."""

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import coach, only_run
from tests.small_runs import FAKE, manifest_of

FLAGS = ("-ntb", "-c", "--plain")


def task_of(run: Path) -> Any:
    return manifest_of(run)["task"]


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
    assert coach("-crd", run, "-ntb", "--plain", "--steps", 30) == 0
    assert task_of(run)["threads"] == 2
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
