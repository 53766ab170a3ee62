import os
import subprocess
import sys
from pathlib import Path

import pytest

from coach_rl.runs.folder import RunFolder
from coach_rl.runs.manifest import changes_since, deciding, made_with
from coach_rl.runs.sources import git_state, keep_differences


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_git_state(tmp_path):
    assert git_state(tmp_path) is None
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "new").write_text("")
    assert git_state(tmp_path) == clean | {"dirty": True}


def test_differences_of_a_checkout_are_kept_with_the_run_and_restore_it(tmp_path, monkeypatch):
    source, run, other = (tmp_path / name for name in ("source", "source/runs/run", "other"))
    run.mkdir(parents=True)
    monkeypatch.chdir(source)
    git(source, "init")
    (source / "old.py").write_text("a = 1\n\n\nb = 2\n\n")
    git(source, "add", "old.py")
    git(source, "commit", "-m", "first")
    git(source, "clone", ".", str(other))
    assert git_state(source)["diff"] is None
    (source / "old.py").write_text("a = 3\n\n\nb = 2\n\n")
    (source / "new.py").write_text("c = 4\n")
    (run / "manifest.json").write_text("")
    (run / "preset.py").write_text("d = 5\n")  # of a run: no source
    first = git_state(source)["diff"]
    keep_differences(RunFolder(run))
    file = run / f"source_{first[:12]}.diff"
    git(other, "apply", str(file))
    assert [each.name for each in sorted(other.glob("*.py"))] == ["new.py", "old.py"]
    assert all((other / n).read_text() == (source / n).read_text() for n in ("old.py", "new.py"))
    (source / "old.py").write_text("a = 6\n")
    assert git_state(source)["diff"] != first


def test_changed_package_of_a_world_is_noticed(monkeypatch):
    monkeypatch.setattr("sys.modules", {**sys.modules, "popgym": pytest})
    monkeypatch.setattr("coach_rl.runs.manifest._version", lambda name: f"1.0 of {name}")
    then = made_with(["my_worlds.forage:Forage"])
    assert then["versions"]["popgym"] == "1.0 of popgym"
    assert then["versions"]["my_worlds"] == "1.0 of my_worlds"
    monkeypatch.setattr("coach_rl.runs.manifest._version", lambda name: f"2.0 of {name}")
    monkeypatch.delitem(sys.modules, "popgym")
    assert "popgym 1.0 of popgym, now 2.0 of popgym" in changes_since(then, deciding())


def test_comparing_versions_starts_no_process(monkeypatch):
    then = made_with()
    monkeypatch.setattr("subprocess.run", None)
    monkeypatch.setattr("subprocess.Popen", None)
    assert changes_since(then, deciding()) == []


def test_a_run_that_is_killed_while_it_asks_leaves_no_lock_in_the_checkout(tmp_path):
    git(tmp_path, "init")
    (tmp_path / "file").write_text("")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    os.utime(tmp_path / "file", (1, 1))  # git would note that it has read it, under a lock
    index = tmp_path / ".git" / "index"
    before = index.read_bytes()
    assert git_state(tmp_path)["dirty"] is False
    assert index.read_bytes() == before
