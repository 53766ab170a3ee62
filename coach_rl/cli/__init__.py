"""The `coach` command: reads a command line, calls the rooms that do the work, prints the results.

May import every room but those of single algorithms. Start with `commands`, the table of commands,
and `flags`, where each flag is declared with what it sets; `parser` generates the parser from both,
`main` runs a command and turns errors into one line.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.cli.commands import COMMANDS, RUNS, parse_arguments
    from coach_rl.cli.describe import describe_preset
    from coach_rl.cli.parser import Command, Flag, Given
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "COMMANDS", "RUNS", "Command", "Flag", "Given", "describe_preset", "parse_arguments",
]  # fmt: skip
