"""Lines printed to be typed into the shell that `coach` was started from."""

import shlex
import shutil
import sys
from pathlib import Path

from coach_rl.core.shown_text import printable


def program(name: str) -> str:
    """Return the call of a program that belongs to this Python's environment.

    Its bare name if the shell finds just that one, else its path: after `make train` nothing is
    activated, and what the shell finds may be another program.
    """
    ours = Path(sys.executable).parent / name  # not resolved: a virtual environment's is a link
    found = shutil.which(name)
    if not ours.exists() or (found is not None and ours.samefile(found)):
        return name
    return shlex.quote(short(ours))


def short(path: Path) -> str:
    """A path relative to the working folder, if it lies below."""
    here = Path.cwd()
    return printable(str(path.relative_to(here) if path.is_relative_to(here) else path))


def word(path: Path) -> str:
    """A path as one word of a command: short, and quoted where it has to be."""
    return shlex.quote(short(path))
