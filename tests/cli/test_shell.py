"""Printed commands work as printed, in the shell that `coach` was started from."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coach_rl.cli.terminal import program, short, word


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """A virtual environment's folder of programs, below the working folder."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "coach"):
        (folder / name).write_text("#!/bin/sh\necho the right one\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return folder


def test_without_activation_a_program_is_named_by_its_path(environment):
    assert program("coach") == ".venv/bin/coach"


def test_in_an_activated_environment_the_bare_name_is_enough(environment, monkeypatch):
    monkeypatch.setenv("PATH", f"{environment}:/usr/bin:/bin")
    assert program("coach") == "coach"


def test_another_program_of_the_same_name_is_not_meant(environment, tmp_path, monkeypatch):
    (tmp_path / "other").mkdir()
    shutil.copy(environment / "coach", tmp_path / "other" / "coach")
    monkeypatch.setenv("PATH", f"{tmp_path}/other:/usr/bin:/bin")
    assert program("coach") == ".venv/bin/coach"


def test_a_program_that_is_not_installed_keeps_its_name(environment):
    assert program("tensorboard") == "tensorboard"


def test_a_program_above_the_working_folder_is_named_in_full(environment, tmp_path, monkeypatch):
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert program("coach") == f"{tmp_path}/.venv/bin/coach"


def test_paths_are_relative_to_the_working_folder_and_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "my runs" / "it's one"
    assert short(run) == "my runs/it's one"
    assert short(Path("/elsewhere")) == "/elsewhere"
    said = subprocess.run(f"printf %s {word(run)}", shell=True, capture_output=True, text=True)
    assert said.stdout == "my runs/it's one"
