"""`coach watch`: what it prints of a run that has ended, and of folders without one."""

import shutil

import pytest

from coach_rl.cli.main import main
from coach_rl.extensions.studies.job import run_job
from tests.cli.commands import coach, only_run
from tests.extensions.studies.walks import walk
from tests.small_runs import FAKE


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    return run_job(walk(tmp_path_factory.mktemp("runs"), signal_at=45)).folder


def test_a_run_that_was_stopped_is_shown_with_how_to_resume_it(stopped, capsys):
    assert main(["watch", str(stopped.parent), "--plain"]) == 0
    watching, folder, line, end = capsys.readouterr().out.splitlines()
    assert watching == "watching:   walk, seed 3"
    assert folder.endswith(stopped.name)
    assert "45 steps" in line
    assert end.startswith("stopped; resume with: ")
    assert end.endswith(f"-crd {stopped}")


def test_a_failure_is_told_and_is_the_exit_code(stopped, tmp_path, capsys):
    run = shutil.copytree(stopped, tmp_path / "run")
    (run / "faults").mkdir()
    (run / "faults" / "step_45.txt").write_text("row 3 died\n\ntraceback\n")
    assert main(["watch", str(run)]) == 1
    assert "\nfailed: row 3 died; resume with: " in capsys.readouterr().out


@pytest.mark.parametrize("fail_at", [5, 30])
def test_failed_run_is_resumed_where_something_was_saved(fail_at, capsys):
    assert coach("-p", FAKE, "-ntb", "-cp", f"fail_at={fail_at}") == 1
    capsys.readouterr()
    assert coach("watch", only_run(), "--plain") == 1
    assert ("resume with" in capsys.readouterr().out) == (fail_at == 30)
