import json
import os
import subprocess
from pathlib import Path

from coach_rl.runs.manifest import git_state, hardware, versions


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def test_git_state(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "new").write_text("")
    assert git_state(tmp_path) == clean | {"dirty": True}


def test_a_run_that_is_killed_while_it_asks_leaves_no_lock_in_the_checkout(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "file").write_text("")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    os.utime(tmp_path / "file", (1, 1))  # git would note that it has read it, under a lock
    index = tmp_path / ".git" / "index"
    before = index.read_bytes()
    assert git_state(tmp_path)["dirty"] is False
    assert index.read_bytes() == before


def test_provenance_is_json() -> None:
    document = {"hardware": hardware(), "versions": versions()}
    assert json.loads(json.dumps(document)) == document
    assert document["hardware"]["cores"] > 0
    assert document["versions"]["numpy"] is not None
