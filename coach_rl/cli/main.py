"""The door: one line on stderr and an exit code for everything that goes wrong.

Exit codes: 0 done, 1 something broke while running, 2 what was asked for cannot be done, 129, 130
and 143 stopped by SIGHUP, Ctrl-C and SIGTERM, 141 the reader of our output has gone.
"""

import argparse
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import TextIO

from coach_rl import environments  # whose names are imported when they are used
from coach_rl.cli.arguments import command_first, parse_arguments
from coach_rl.cli.settings import (
    CheckPreset,
    Describe,
    EvaluateUntrained,
    ListPresets,
    Train,
    TrainSeeds,
)
from coach_rl.cli.shell import program
from coach_rl.cli.subcommands import SUBCOMMANDS, subcommand, underscored
from coach_rl.configuration.presets import describe_presets, find_preset
from coach_rl.core.errors import (
    CoachError,
    CoachWarning,
    ConfigurationError,
    EnvironmentFault,
    UnknownNameError,
    in_one_line,
    require_unix,
)
from coach_rl.core.printable_text import one_line

_FIRST_COMMANDS = """Reinforcement-learning experiments that are described by presets. To begin:

  {coach} list                                list the presets that come with it
  {coach} train CartPole_PPO                  train one, in about a minute
  {coach} play experiments/CartPole_PPO       watch what it has learned

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
    except CoachError as error:
        own = isinstance(error, EnvironmentFault) and "--debug" not in words
        hint = "; run again with --debug for the traceback" if own else ""
        return _report(f"{error}{hint}", error.exit_code, words)
    except BrokenPipeError:
        # Whoever read our output has gone, e.g. `coach describe NAME | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt as error:
        number = getattr(error, "signal", signal.SIGINT)
        return _report(str(error) or "interrupted", _SIGNALLED + number, words, kind="")
    except BaseException as error:
        if isinstance(error, SystemExit) and _is_argparse(error):
            raise
        hint = "run again with --debug for the traceback"
        return _report(f"{in_one_line(error)}; {hint}", 1, words)


def _is_argparse(error: SystemExit) -> bool:
    """Return whether the command line itself ends here, as with --help; others must not end it."""
    return traceback.extract_tb(error.__traceback__)[-1].filename == argparse.__file__


def _run(words: list[str]) -> int:
    require_unix()
    if not words:
        print(_FIRST_COMMANDS.format(coach=program("coach")))
        return 0
    typed, words = words, command_first(words)
    if words[:1] == ["help"] and words[1:2] and words[1] in SUBCOMMANDS:
        words = [words[1], "--help"]
    if words and words[0] in SUBCOMMANDS:
        return subcommand(words[0])([underscored(word) for word in words[1:]])
    settings = parse_arguments(words)
    if isinstance(settings, ListPresets):
        return _list(settings)
    if isinstance(settings, Train | TrainSeeds | EvaluateUntrained | Describe | CheckPreset):
        _require_preset(settings.preset)  # a misspelt name is reported at once
    # Not at the top: this imports torch, which takes seconds; what stands above answers at once.
    if isinstance(settings, TrainSeeds):
        from coach_rl.cli.seeds import train_seeds

        return train_seeds(settings, typed)
    from coach_rl.cli.commands import run_command

    return run_command(settings, typed)


def _require_preset(text: str) -> None:
    """Raise an error if there is no such preset, and say so if it is a level's name."""
    try:
        find_preset(text)
    except UnknownNameError as error:
        alike = [name for name in environments.level_names() if _plain(name) == _plain(text)]
        if not alike or any(text.lower() in preset.lower() for preset in error.allowed):
            raise
        level = max(alike, key=lambda name: (-len(name), name))  # the short name, or newest version
        raise ConfigurationError(
            f"unknown preset '{text}'; it is a level (task): give a preset, and -lvl {level} "
            "(`coach -l` lists the presets)"
        ) from error


def _plain(name: str) -> str:
    """A name without what spellings of a level differ in."""
    return re.sub(r"-v\d+$|[_\W]", "", name).lower()


def _list(settings: ListPresets) -> int:
    presets = dict(describe_presets())
    found = [name for name in presets if settings.word.lower() in name.lower()]
    if settings.word and not found:
        raise ConfigurationError(
            f"no preset's name contains '{settings.word}'; `coach -l` lists them all"
        )
    for name in found:
        print(f"{name:<24} {presets[name]}")
    return 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings in one line for the user, everybody else's as Python shows them."""
    if issubclass(category, CoachWarning):
        text = f"coach: warning: {one_line(str(message))}\n"
    else:
        text = warnings.formatwarning(message, category, filename, lineno, line)
    print(text, end="", file=file or sys.stderr)


def _report(message: str, exit_code: int, words: list[str], *, kind: str = "error: ") -> int:
    if "--debug" in words:
        traceback.print_exc()
    print(f"coach: {kind}{one_line(message)}", file=sys.stderr)
    return exit_code
