"""Declarations of flags and commands, and the parser that is generated from them.

Light on purpose: nothing here, in `flags` or in `commands` imports numpy, torch or rich, so every
`--help` and every mistyped flag answers at once.
"""

import argparse
import importlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NoReturn

import coach_rl
from coach_rl.configuration.familiar_names import familiar_flags, names_here
from coach_rl.core.errors import (
    MOST_LISTED,
    CoachError,
    ConfigurationError,
    UnknownNameError,
    near_names,
)


@dataclass(frozen=True)
class Flag:
    """A flag, or a word without one, of the command line."""

    form: str
    """Spellings and value, as the help shows them: `-n, --num_envs N`. A value in brackets may be
    left out, `N ...` stands for several; without a spelling it is a word such as `FOLDER ...`."""
    help: str
    """Its meaning."""
    read: Callable[[str], Any] = str
    """Reader of the value's text."""
    _: KW_ONLY
    name: str = ""
    """Its name for the command; empty: the last spelling, or the word. Flags that share a name
    exclude each other."""
    choices: tuple[str, ...] = ()
    """The values that are allowed; empty: any."""
    value: object = True
    """Its value where none follows it."""
    is_repeated: bool = False
    """If True, it may be given several times; its value is a list."""
    sets: str | Callable[[Any], Mapping[str, object]] = ""
    """Target of its value: a path in the parameters of an experiment, such as
    `checkpoints.keep_last`, or the field of a settings class, such as `Runtime.seed`; a function
    from its value to values by path where these are several, or are made from it. A part of the run
    that it requests: `module:Class`, with `.field` where its value is that of a field; values of
    one field from several flags are added. Empty: nothing by itself."""
    of: str = ""
    """The commands that take it, by name, separated by spaces; empty: all that list it."""
    group: str = ""
    """The title under which the help shows it."""
    needs: str = ""
    """Spellings of flags of which one has to be given as well, separated by spaces; empty: none."""
    added_by: str = ""
    """The flags that add the parameter that it sets, for the error where an experiment has none."""
    separator: str = ""
    """Separator of the parts of its value, where that has several; empty: it has one."""
    left_out: str = ""
    """Pattern of words that are its value where it was left out, for messages; empty: none is."""

    @property
    def spellings(self) -> list[str]:
        """The flag in every spelling; empty for a word."""
        return [word.rstrip(",") for word in self.form.split() if word.startswith("-")]

    @property
    def placeholder(self) -> str:
        """Placeholder of the value; empty if it takes none."""
        return " ".join(word for word in self.form.split() if not word.startswith("-"))

    @property
    def dest(self) -> str:
        """The name under which commands find its value."""
        word = self.placeholder.strip("[]").partition(" ")[0].lower()
        return self.name or (self.spellings[-1].lstrip("-") if self.spellings else word)

    @property
    def is_about_part(self) -> bool:
        """True if it requests a part of the run, or sets one of its fields."""
        return isinstance(self.sets, str) and ":" in self.sets

    @property
    def default(self) -> bool | None:
        """Its value if it is not given: False of a switch, else None."""
        return False if self.value is True and not self.placeholder else None

    def add_to(self, group: argparse._ActionsContainer, *, is_shown: bool) -> None:
        """Add it to a group of a parser."""
        more: dict[str, Any] = {"help": self.help if is_shown else argparse.SUPPRESS}
        more |= {"dest": self.dest} if self.spellings else {"default": None}
        if not self.placeholder:
            more |= {"action": "store_const", "const": self.value}
        else:
            is_optional, is_several = self.placeholder[0] == "[", "..." in self.placeholder
            several = "*" if is_optional else "+"
            more |= {
                "metavar": self.placeholder.strip("[]").removesuffix(" ..."),
                "type": self.read,
                "choices": self.choices or None,
                "action": "append" if self.is_repeated else "store",
                "nargs": several if is_several else "?" if is_optional else None,
            }
            if is_optional and self.spellings and not is_several:
                more |= {"const": self.value}
        group.add_argument(*(self.spellings or [self.dest]), **more)


PLAIN = Flag("--plain", "plain lines instead of a live, coloured panel", group="general")
DEBUG = Flag("--debug", "show the traceback of an error", group="general")


@dataclass(frozen=True)
class Command:
    """A command, its flags, and the function that runs it."""

    name: str
    """The words that call it."""
    arguments: str
    """Its usage, after its name."""
    description: str = ""
    """Its purpose."""
    _: KW_ONLY
    run: str = ""
    """The function that runs it, `module:function` of this room, or with the module's whole path:
    from `Given` to the exit code. Empty: it is the first word of other commands."""
    table: Sequence[Flag] | str = ()
    """Its flags, or a table that it shares with other commands; `module:NAME` of them."""
    shown: str = ""
    """Its line in the help of `coach`; empty: none."""
    flag_group: str = ""
    """Its names in `Flag.of`, separated by spaces; empty: its own name."""
    subject: str = ""
    """The name of the flag that may also be given as a word without the flag."""
    limits: str = ""
    """The reason why it takes no other flags of the table."""
    after_run: str = ""
    """Its name in the lines that `coach` ends with after a run, with the run; empty: no line."""

    @cached_property
    def flags(self) -> Sequence[Flag]:
        """Its flags, or a table that it shares with other commands; imported now if named."""
        if not isinstance(self.table, str):
            return self.table
        flags: Sequence[Flag] = found(self.table)
        return flags

    @property
    def prog(self) -> str:
        """Words that call it, `coach` first."""
        return f"coach {self.name}".rstrip()

    @property
    def usage(self) -> str:
        """Its usage."""
        return f"{self.prog} {self.arguments}"

    def taken(self) -> tuple[Flag, ...]:
        """The flags that it takes."""
        groups = {*self.flag_group.split()} or {self.name}
        return tuple(flag for flag in self.flags if not flag.of or groups & {*flag.of.split()})

    def function(self) -> "Callable[[Given], int]":
        """The function that runs it; imported now, which may take seconds."""
        is_of_this_room = "." not in self.run
        run: Callable[[Given], int] = found(
            f"{__package__}.{self.run}" if is_of_this_room else self.run
        )
        return run


def found(name: str) -> Any:
    """The object that `module:NAME` names; imported now."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


class Given(argparse.Namespace):
    """Values that a command line gives to the flags of its command, or their defaults."""

    command: Command
    words: tuple[str, ...]
    """The command line as it was typed."""

    def __init__(self, command: Command, values: Mapping[str, object]) -> None:
        self.command = command
        self.words = ()
        defaults = {flag.dest: flag.default for flag in (*command.taken(), PLAIN, DEBUG)}
        super().__init__(**{**dict.fromkeys(filter(None, [command.subject])), **defaults, **values})


class Parser(argparse.ArgumentParser):
    """Raises our own error instead of printing the usage and exiting; flags are spelt in full.

    Args:
        command: The command; the parser knows all flags of its table.
        also: Further commands whose flags the help shows.
    """

    def __init__(self, command: Command, also: Iterable[Command] = ()) -> None:
        super().__init__(
            prog=command.prog,
            usage=command.usage,
            description=command.description,
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
            argument_default=argparse.SUPPRESS,
        )
        self.command = command
        """The command."""
        shown = {id(flag) for each in (command, *also) for flag in each.taken()}
        groups: dict[str, argparse._ActionsContainer] = {"": self}
        exclusive: dict[str, argparse._ActionsContainer] = {}
        names = [flag.dest for flag in command.flags]
        for flag in (*command.flags, PLAIN, DEBUG):
            group = groups.get(flag.group) or self.add_argument_group(flag.group)
            groups[flag.group] = group
            if names.count(flag.dest) > 1:
                again = exclusive.get(flag.dest) or group.add_mutually_exclusive_group()
                exclusive[flag.dest] = group = again
            flag.add_to(group, is_shown=id(flag) in shown or flag in (PLAIN, DEBUG))
        version = f"coach_rl {coach_rl.__version__}"
        meaning = argparse.SUPPRESS if command.name else "show the version and exit"
        group.add_argument("--version", action="version", version=version, help=meaning)
        group.add_argument("-h", "--help", action="help", help="show this and exit")

    def flags(self) -> list[str]:
        """Every flag, in every spelling."""
        return [flag for action in self._actions for flag in action.option_strings]

    def read(self, words: Sequence[str]) -> tuple[dict[str, object], list[str]]:
        """Values by name, and the words that belong to no flag.

        Raises:
            UnknownNameError: One is an unknown flag; names the nearest ones.
            ConfigurationError: A value doesn't fit, or something else is wrong.
        """
        namespace, rest = self.parse_known_args(list(words))
        for word in rest:
            if word.startswith("-"):
                raise self.unknown(word.partition("=")[0], words)
        return {name: value for name, value in vars(namespace).items() if value is not None}, rest

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print; a flag that only begins as others do is unknown."""
        if ambiguous := re.match(r"ambiguous option: (\S+) could match", message):
            raise self.unknown(ambiguous[1], ())
        raise ConfigurationError(f"{message} (`{self.prog} --help` shows all flags)")

    def unknown(self, flag: str, words: Sequence[str]) -> UnknownNameError:
        """The error about an unknown flag, which suggests what the preset of a line takes.

        Args:
            flag: The flag.
            words: The command line.
        """
        files = [each for each in self.command.arguments.split() if each in ("FILE", "FOLDER")]
        if files and flag.lstrip("-") in _WHERE_TO:
            usage = self.command.usage.removesuffix(" [flags]")
            near = [f"{usage}, with {files[-1]} as a word of its own"]
            return UnknownNameError("flag", flag, (), f"`{self.prog} --help` shows all", near)
        first = next((word for word in words if not word.startswith("-")), "")
        named = _after(words, "-p", "--preset") or first
        settings = _settings_of(named, _after(words, "-lvl", "--level"))
        return unknown_flag(flag, self.flags(), f"`{self.prog} --help` shows all", settings)


class _Formatter(argparse.HelpFormatter):
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


def underscored(word: str) -> str:
    """A word with its flag as it is declared: `--last-good` is `--last_good`."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    return f"--{flag[2:].replace('-', '_')}{equals}{value}"


_WHERE_TO = ("file", "o", "out", "output", "output_file", "path", "save", "save_path", "to")
"""Flags that other programs have for a file to write."""
_SOME_TASKS = ("CartPole-v1", "Pendulum-v1")
"""Tasks for presets that need one where none is given: with discrete and with other actions."""


def _after(words: Sequence[str], *flags: str) -> str:
    """The value of a flag on a command line; empty where it is not given."""
    for word, following in pairwise((*words, "")):
        name, equals, value = word.partition("=")
        if name in flags:
            return value if equals else following
    return ""


def _settings_of(name: str, level: str = "") -> list[str]:
    """The panel and the paths of the parameters of a preset; empty where it can't be built.

    Args:
        name: The preset.
        level: The task it is to have; empty: none is given.
    """
    if not name:
        return []
    from coach_rl.configuration.overrides import parameter_paths
    from coach_rl.configuration.preset_file import load_preset
    from coach_rl.configuration.presets import find_preset

    for task in (level, "", *_SOME_TASKS):
        try:
            preset = load_preset(find_preset(name))
            changes = (preset.setting("environment.level", task),) if task else ()
            parameters = preset.configure(dict(changes)).parameters
        except CoachError:
            continue
        return [*preset.panel, *(path for path, _, _ in parameter_paths(parameters))]
    return []


def unknown_flag(
    flag: str, flags: Iterable[str], hint: str, settings: Collection[str] = ()
) -> UnknownNameError:
    """The error about an unknown flag.

    It suggests the same flag with another dash, or those with the same meaning or a similar name.

    Args:
        flag: The flag.
        flags: All flags that exist.
        hint: Where all are listed.
        settings: The panel and the paths of the preset that is named; empty where none is.
    """
    flags = list(flags)
    by_name = {known.lstrip("-"): known for known in flags}
    familiar = familiar_flags(flag, flags, settings)
    spelt = [by_name[name] for name in near_names(flag.lstrip("-"), by_name)]
    called = [f"coach {name}" for name in names_here("commands").get(flag.lstrip("-"), ())]
    near = [f"-{flag}"] if f"-{flag}" in flags else familiar or called or spelt
    is_few = len(flags) <= MOST_LISTED
    return UnknownNameError("flag", flag, flags if near or is_few else (), hint, near)
