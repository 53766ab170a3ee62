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


@pytest.mark.parametrize(
    ("name", "path", "folder", "printed"),
    [
        ("coach", "", ".", ".venv/bin/coach"),
        ("coach", ".venv/bin", ".", "coach"),  # as in an activated environment
        ("coach", "other", ".", ".venv/bin/coach"),  # where another program has its name
        ("coach", "", "below", "{root}/.venv/bin/coach"),
        ("tensorboard", "", ".", "tensorboard"),  # which is not installed
    ],
)
def test_program_is_named_as_the_shell_finds_it(
    environment, tmp_path, monkeypatch, name, path, folder, printed
):
    for each in ("other", "below"):
        (tmp_path / each).mkdir()
    shutil.copy(environment / "coach", tmp_path / "other" / "coach")
    monkeypatch.setenv("PATH", f"{tmp_path / path if path else ''}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path / folder)
    assert program(name) == printed.format(root=tmp_path)


def test_paths_are_relative_to_the_working_folder_and_quoted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "my runs" / "it's one"
    assert short(run) == "my runs/it's one"
    assert short(Path("/elsewhere")) == "/elsewhere"
    said = subprocess.run(f"printf %s {word(run)}", shell=True, capture_output=True, text=True)
    assert said.stdout == "my runs/it's one"
