"""Completion of command lines in shells, by argcomplete: commands, flags, presets, tasks, runs.

`register-python-argcomplete coach` prints what a shell has to read. It then calls `coach` with the
line so far in its environment, which `answer` completes.
"""

import os
from collections.abc import Iterable
from typing import Any

from coach_rl import environments
from coach_rl.cli.commands import COACH, COMMANDS
from coach_rl.cli.parser import Command, Parser
from coach_rl.configuration.presets import shipped_presets
from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.runs.trained import PREFIX, trained_policies

REQUEST = "_ARGCOMPLETE"
"""The variable of the environment that argcomplete sets when a shell completes a line."""


def answer() -> None:
    """Write the completions of the line in the environment, and end the process.

    Raises:
        ConfigurationError: argcomplete is not installed.
    """
    try:
        import argcomplete
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"completion needs the package argcomplete; {how_to_install('completion')}"
        ) from error
    words = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))].split()[1:]
    name = _named(words)
    command = COMMANDS.get(name, COACH)
    os.environ[REQUEST] = str(1 + len(name.split()))  # the word that its arguments follow
    parser = Parser(command)
    for action in parser._actions:
        action.completer = _of_value(action.dest)  # type: ignore[attr-defined] # argcomplete's
    subject: Any = parser.add_argument("subject", nargs="*")
    subject.completer = _subjects(command)
    argcomplete.autocomplete(parser, always_complete_options="long")


def _named(words: list[str]) -> str:
    """The name of the command that a line begins with; empty: none yet."""
    for length in (2, 1):
        name = " ".join(words[:length])
        if len(words) >= length and name in COMMANDS:
            return name
    return ""


def _of_value(dest: str) -> Any:
    """The completer of a flag's values; None: files."""
    if dest in ("run", "runs", "source"):
        return _runs
    names = {"preset": shipped_presets, "level": environments.level_names}.get(dest)
    return None if names is None else lambda **_: list(names())


def _subjects(command: Command) -> Any:
    """The completer of the words that are no flags."""
    if command is COACH:
        return lambda **_: sorted({each.partition(" ")[0] for each in COMMANDS})
    if command.subject == "preset":
        return lambda **_: list(shipped_presets())
    return _runs


def _runs(prefix: str, **_: object) -> Iterable[str]:
    """Trained agents, and folders that begin like this."""
    from argcomplete.completers import DirectoriesCompleter

    trained = (f"{PREFIX}{each.name}" for each in trained_policies())
    return [*(name for name in trained if name.startswith(prefix)), *DirectoriesCompleter()(prefix)]
