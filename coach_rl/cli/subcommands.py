"""Commands about many runs: a file each, with its own parser, imported when it is asked for.

Such a file has a function `run(words)`, which reads the words after the command's name, does what
they say, and returns the exit code. Its parser is a `Parser`.
"""

import argparse
import importlib
from collections.abc import Callable, Sequence
from typing import NoReturn

from coach_rl.configuration.familiar_names import familiar_flags
from coach_rl.core.errors import MOST_LISTED, ConfigurationError, UnknownNameError, near_names

SUBCOMMANDS = {
    "compare": "coach_rl.cli.compare",
    "dashboard": "coach_rl.cli.dashboard",
    "play": "coach_rl.cli.play",
    "plot": "coach_rl.cli.plot",
    "report": "coach_rl.cli.report",
    "runs": "coach_rl.cli.runs",
    "study": "coach_rl.cli.studies",
    "sweep": "coach_rl.cli.sweep",
    "watch": "coach_rl.cli.watch",
}
"""The module of each command."""


def subcommand(name: str) -> Callable[[Sequence[str]], int]:
    """The function that runs one of the commands above."""
    run: Callable[[Sequence[str]], int] = importlib.import_module(SUBCOMMANDS[name]).run
    return run


def underscored(word: str) -> str:
    """A word with its flag as parsers spell it: `--last-good` is `--last_good`."""
    flag, equals, value = word.partition("=")
    return f"--{flag[2:].replace('-', '_')}{equals}{value}" if word.startswith("--") else word


def unknown_flag(flag: str, flags: Sequence[str], hint: str) -> UnknownNameError:
    """The error about a flag that there is not, with those that may be meant.

    They are the same flag with another dash, or one with the meaning or the spelling of this one.

    Args:
        flag: The flag.
        flags: Those that there are.
        hint: What shows all.
    """
    by_name = {known.lstrip("-"): known for known in flags}
    familiar = [each for each in familiar_flags(flag) or () if each.partition(" ")[0] in flags]
    spelt = [by_name[name] for name in near_names(flag.lstrip("-"), by_name)]
    near = [f"-{flag}"] if f"-{flag}" in flags else familiar or spelt
    is_few = len(flags) <= MOST_LISTED
    return UnknownNameError("flag", flag, flags if near or is_few else (), hint, near)


class Parser(argparse.ArgumentParser):
    """Raises our own error instead of printing the usage and exiting; flags are spelt in full.

    Args:
        arguments: As of argparse's parser.
    """

    def __init__(self, **arguments: object) -> None:
        defaults = {"formatter_class": Formatter, "allow_abbrev": False}
        super().__init__(**{**defaults, **arguments})  # type: ignore[arg-type]  # passed through

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Read words, of which nothing may be left.

        Raises:
            UnknownNameError: One is a flag that there is not; says the nearest ones.
            ConfigurationError: Something else is wrong with them.
        """
        self._add_general()
        given, rest = self.parse_known_args(words)
        if rest:
            asked = self._asked(words)
            word, more = rest[0].partition("=")[0], f"`{asked.prog} --help` shows all flags"
            if word.startswith("-"):
                flags = [flag for action in asked._actions for flag in action.option_strings]
                raise unknown_flag(word, flags, more)
            raise ConfigurationError(f"unexpected argument '{word}' ({more})")
        return given

    def _add_general(self) -> None:
        """Add the flags that every command takes, also behind the name of a command below."""
        _add_general(self, default=False)
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    _add_general(parser, default=argparse.SUPPRESS)

    def _asked(self, words: Sequence[str]) -> argparse.ArgumentParser:
        """The parser of the command in the words, where there are several; else this one."""
        below = [act for act in self._actions if isinstance(act, argparse._SubParsersAction)]
        found = [act.choices[word] for act in below for word in words if word in act.choices]
        return found[0] if found else self

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print."""
        raise ConfigurationError(f"{message} (`{self.prog} --help` shows all flags)")


def _add_general(parser: argparse.ArgumentParser, *, default: object) -> None:
    group = parser.add_argument_group("general")
    for flag, meaning in (
        ("--plain", "plain lines, without colours or a live display"),
        ("--debug", "show the traceback of an error"),
    ):
        group.add_argument(flag, action="store_true", default=default, help=meaning)


class Formatter(argparse.HelpFormatter):
    """The same layout in every terminal and Python version."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return str(action.metavar)
        names = ", ".join(action.option_strings)
        if action.nargs == 0:
            return names
        value = f"[{action.metavar}]" if action.nargs == "?" else str(action.metavar)
        return f"{names} {value}"
