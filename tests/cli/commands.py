"""The `coach` command in this process, and the run that it made."""

from pathlib import Path
from typing import Any

from coach_rl.cli.main import main


def coach(*words: Any) -> int:
    return main([str(word) for word in words])


def only_run(name: str = "fake_preset", root: Path = Path("experiments")) -> Path:
    (run,) = (root / name).iterdir()
    return run
