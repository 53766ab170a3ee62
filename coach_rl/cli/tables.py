"""Tables in a terminal, or whole in a file or pipe, however wide they are."""

import sys

from rich.console import Console

_WIDTH_OF_A_FILE = 250


def table_console() -> Console:
    """A console for tables and plain sentences."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    return Console(highlight=False, markup=False, soft_wrap=True, width=width)
