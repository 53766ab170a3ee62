"""Tables in a terminal, or whole in a file or pipe, however wide they are."""

import sys

from rich.console import Console
from rich.table import Table

from coach_rl.core.printable_text import printable
from coach_rl.studies.comparison import TextTable

_WIDTH_OF_A_FILE = 250


def table_console() -> Console:
    """A console for tables and plain sentences."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_FILE
    return Console(highlight=False, markup=False, soft_wrap=True, width=width)


def show(table: TextTable, console: Console) -> None:
    """Print a table, whose first two columns are names and whose others are numbers."""
    shown = Table(title=table.title, title_justify="left")
    for index, name in enumerate(table.header):
        shown.add_column(name, justify="left" if index < 2 else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(printable, row))
    console.print(shown)
