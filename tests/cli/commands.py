"""The `coach` command in this process, and the run that it made."""

import sys
from pathlib import Path
from typing import Any

import pytest

from coach_rl.cli.main import main


def coach(*words: Any) -> int:
    return main([str(word) for word in words])


def only_run(name: str = "fake_preset", root: Path = Path("experiments")) -> Path:
    (run,) = (root / name).iterdir()
    return run


def install_gaits(site: Path, entry_points: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder's package `gaits` be installed, and work in an empty folder beside it."""
    metadata = site / "gaits-1.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gaits\nVersion: 1.2\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(site)
    here = site.with_name("here")
    here.mkdir()
    monkeypatch.chdir(here)
    for name in [each for each in sys.modules if each.partition(".")[0] == "gaits"]:
        monkeypatch.delitem(sys.modules, name)
