"""README.md leads from nothing to an exported policy within three minutes."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
SCRIPT = CHECKOUT / ".ci" / "first_minutes.py"


def test_commands_are_read_from_the_readme() -> None:
    commands = runpy.run_path(str(SCRIPT))["commands"]((CHECKOUT / "README.md").read_text())
    words = [each.split()[:2] for each in commands]
    assert words == [["coach", each] for each in ("new", "train", "play", "plot", "export")]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_commands_of_the_readme_take_three_minutes_at_most() -> None:
    """In this environment; `.ci/first_minutes.py` alone installs a fresh clone first."""
    words = [sys.executable, SCRIPT, "--installed"]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "s of wall time after the installation" in result.stdout
