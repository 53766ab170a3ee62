"""The `coach` command: one line on stderr and an exit code for each failure.

Exit codes: 0 success, 1 a failure while running, 2 a request that cannot be met, 129, 130 and 143
stopped by SIGHUP, Ctrl-C and SIGTERM, 141 a closed pipe on standard output.
"""

import argparse
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from coach_rl import environments  # whose names are imported when they are used
from coach_rl.cli.commands import COMMANDS as OWN_COMMANDS
from coach_rl.cli.commands import TAKEN, commands_of, parse_arguments
from coach_rl.cli.completion import REQUEST
from coach_rl.cli.completion import answer as complete
from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import program
from coach_rl.configuration.entry_points import (
    COMMANDS,
    InstalledEntry,
    entry_points,
    installed_entries,
    load_command,
    require_usable,
)
from coach_rl.configuration.extensions import installed_extensions
from coach_rl.configuration.presets import describe_presets, find_preset
from coach_rl.core.errors import (
    CoachError,
    CoachWarning,
    ConfigurationError,
    EnvironmentFault,
    ProblemsError,
    UnknownNameError,
    in_one_line,
)
from coach_rl.core.shown_text import one_line, printable
from coach_rl.runs.trained import trained_policies

_FIRST_COMMANDS = """Reinforcement-learning experiments that are described by presets. To begin:

  {coach} list                                    list the presets that come with it
  {coach} play trained:Mujoco_PPO/half_cheetah    watch an agent that comes trained
  {coach} train CartPole_PPO                      train one, in about a minute
  {coach} play experiments/CartPole_PPO           watch what it has learned

`coach --help` shows all commands and flags."""
_BROKEN_PIPE = 141
_SIGNALLED = 128
"""A process stopped by signal n exits with this plus n."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the `coach` command.

    Args:
        arguments: The command line without the program's name; None takes this process's own.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return _run(words)
    except ProblemsError as error:
        return _report(error.problems, error.exit_code, words)
    except CoachError as error:
        own = isinstance(error, EnvironmentFault) and "--debug" not in words
        hint = "; run again with --debug for the traceback" if own else ""
        return _report([f"{error}{hint}"], error.exit_code, words)
    except BrokenPipeError:
        # The reader of our output has ended, as in `coach describe NAME | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", signal.SIGINT)
        return _report([str(error) or "interrupted"], _SIGNALLED + number, words, kind="")
    except BaseException as error:
        if isinstance(error, SystemExit) and _is_argparse(error):
            raise
        hint = "run again with --debug for the traceback"
        return _report([f"{in_one_line(error)}; {hint}"], 1, words)


def _is_argparse(error: SystemExit) -> bool:
    """Return whether the command line itself ends here, as with --help; others must not end it."""
    return traceback.extract_tb(error.__traceback__)[-1].filename == argparse.__file__


def _run(words: list[str]) -> int:
    if REQUEST in os.environ:
        complete()
    if not words:
        lines = _FIRST_COMMANDS.splitlines()
        begun = {line: line.partition("{coach} ")[2].partition(" ")[0] for line in lines}
        shown = [line for line in lines if begun[line] in {"", *OWN_COMMANDS}]
        print("\n".join(shown).format(coach=program("coach")))
        return 0
    installed = _installed_command(words[0])
    if installed is not None:
        return _exit_code(load_command(installed), words[1:])
    given = parse_arguments(words)
    given.words = tuple(words)
    if given.command.subject == "preset":
        _require_preset(given.preset)  # a misspelt name is reported at once
    return given.command.function()(given)


def _require_preset(text: str) -> None:
    """Raise an error if there is no such preset; it names the flag if this is a task's name."""
    try:
        find_preset(text)
    except UnknownNameError as error:
        alike = [name for name in environments.level_names() if _plain(name) == _plain(text)]
        if not alike or any(text.lower() in preset.lower() for preset in error.allowed):
            raise
        task = max(alike, key=lambda name: (-len(name), name))  # the short name, or newest version
        raise ConfigurationError(
            f"unknown preset '{text}'; it is a task: give a preset, and -lvl {task} (`coach -l` "
            "lists the presets)"
        ) from error


def _plain(name: str) -> str:
    """A task's name without its version, and without case and punctuation."""
    return re.sub(r"-v\d+$|[_\W]", "", name).lower()


def list_presets(given: Given) -> int:
    """Print what the package offers, or what of it is named like a word; the exit code.

    These are presets and the commands of other packages, or the trained agents.
    """
    word = given.word or ""
    kind = "preset"
    lists = "coach -l"
    if given.trained:
        kind = "trained agent"
        lists = "coach -l --trained"
        known = {f"trained:{each.name}": each.score for each in trained_policies()}
    else:
        known = dict(describe_presets())
    found = [name for name in known if word.lower() in name.lower()]
    if word and not found:
        raise ConfigurationError(f"no {kind}'s name contains '{word}'; `{lists}` lists them all")
    width = max([24, *map(len, found)])
    for name in found:
        print(f"{name:<{width}} {known[name]}")
    if not word and not given.trained:
        _list_installed(width)
    return 0


def _list_installed(width: int) -> None:
    """Print the commands and extensions of other packages, or why they cannot be used."""
    points = entry_points()
    for entry in installed_entries(COMMANDS, TAKEN, points):
        text = f"cannot be used: {entry.problem}" if entry.problem else "command"
        print(f"{f'coach {entry.name}':<{width}} {text} ({entry.package})")
    extensions, problems = installed_extensions(points)
    for extension in extensions:
        for command in commands_of(extension).values():
            taken = command.name.partition(" ")[0] in TAKEN
            text = "cannot be used: coach_rl has one of that name" if taken else "command"
            print(f"{command.prog:<{width}} {text} ({extension.package})")
        print(f"{extension.name:<{width}} {printable(extension.summary)} ({extension.package})")
    for name, problem in problems.items():
        print(f"{name:<{width}} extension that cannot be used: {problem}")


def _installed_command(word: str) -> InstalledEntry | None:
    """The command of an installed package that a first word calls; None where it calls none."""
    if word.startswith("-") or word in TAKEN:
        return None
    return require_usable(installed_entries(COMMANDS, TAKEN), word)


def _exit_code(command: Callable[[Sequence[str]], object], words: Sequence[str]) -> int:
    """The exit code of a command of a package: a number that it returns, else 0.

    One that ends by `sys.exit` has the code that Python gives it, with a text printed and 1.
    """
    try:
        result = command(words)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0)
        print(end.code, file=sys.stderr)
        return 1
    return result if isinstance(result, int) and result is not True else 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print our own warnings in one line, and others as Python prints them."""
    if issubclass(category, CoachWarning):
        text = f"coach: warning: {one_line(str(message))}\n"
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=file or sys.stderr)


def _report(
    messages: Iterable[str], exit_code: int, words: list[str], *, kind: str = "error: "
) -> int:
    if "--debug" in words:
        traceback.print_exc()
    for message in messages:
        print(f"coach: {kind}{one_line(message)}", file=sys.stderr)
    return exit_code
