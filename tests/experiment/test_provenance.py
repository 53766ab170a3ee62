import json
import subprocess
from pathlib import Path

from coach_rl.experiment.provenance import git_state, hardware, versions


def test_git_state(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    clean = git_state(tmp_path)
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "new").write_text("")
    assert git_state(tmp_path) == clean | {"dirty": True}


def test_provenance_is_json() -> None:
    document = {"hardware": hardware(), "versions": versions()}
    assert json.loads(json.dumps(document)) == document
    assert document["hardware"]["cores"] > 0
    assert document["versions"]["numpy"] is not None
