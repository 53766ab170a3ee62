"""Texts for the terminal: consoles for tables, and lines to be typed into the shell of `coach`."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coach_rl.core.shown_text import printable

if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_OF_A_FILE = 250


def console_of(*, plain: bool) -> "Console":
    """The terminal; plain without colours."""
    # Not at the top, here and below: `coach --help` needs no tables.
    from rich.console import Console

    return Console(no_color=plain, highlight=False)


def table_console() -> "Console":
    """A console for tables, whole in a file or pipe, and plain sentences."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    return Console(highlight=False, markup=False, soft_wrap=True, width=width)


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
