"""The commands of `coach`, and the reading of a command line into one of them.

A command is named (`coach resume RUN`) or follows from its flags, as in Coach (`coach -crd RUN`).
To add one, describe it here; its flags stand in `flags`. Commands of extensions stand in their
tables (see `configuration.extensions`). Light on purpose, like `parser`.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from coach_rl.cli import flags
from coach_rl.cli.parser import Command, Flag, Given, Parser, found, underscored
from coach_rl.configuration.extensions import (
    Extension,
    installed_extensions,
    own_extensions,
)
from coach_rl.configuration.familiar_names import names_here
from coach_rl.configuration.presets import any_task_presets, shipped_presets
from coach_rl.core.errors import (
    ConfigurationError,
    UnknownNameError,
    in_one_line,
    near_names,
)

_FORM = re.compile(r" --?\w+$")
"""End of the name of a command's form: the flag with which it is meant."""
RUNS: tuple[Flag, ...] = (
    *flags.RUNS,
    *(flag for each in own_extensions() if each.flags for flag in found(each.flags)),
)
"""The flags of all commands about one run, or one preset, with those of extensions."""
_one_run = partial(Command, table=RUNS)
"""A command about one run or preset, which share a table of flags."""
_ALL = (
    _one_run(
        "train",
        "PRESET [flags]",
        "Train a preset's experiment in a new run folder; in short `coach -p PRESET`, "
        "also `coach run PRESET`.",
        run="train:train",
        subject="preset",
        limits="it begins a new run",
    ),
    _one_run(
        "resume",
        "RUN [flags]",
        "Resume a run exactly where it stopped; in short `coach -crd RUN`.",
        run="train:resume",
        subject="run",
        limits="the run is rebuilt from its manifest and keeps its seed (coach fork changes runs)",
    ),
    _one_run(
        "fork",
        "RUN[@STEP] --as NAME [flags]",
        "Train a new run that starts from another one's state, with changed "
        "parameters; the other one stays as it is.",
        run="train:fork",
        subject="run",
        limits="a fork continues from the run's state, which belongs to its environments",
    ),
    _one_run(
        "evaluate",
        "RUN [flags]",
        "Evaluate a run greedily; in short `coach --evaluate -crd RUN`. With -p PRESET "
        "instead of RUN: a preset's agents before any training.",
        run="evaluate:evaluate",
        subject="run",
        limits="it trains nothing, and rebuilds the run from its manifest",
    ),
    _one_run(
        "describe",
        "PRESET [flags]",
        "Print a preset's control panel, resolved parameters, levels and networks.",
        run="describe:describe",
        subject="preset",
        limits="it only builds the experiment",
    ),
    _one_run(
        "list",
        "[WORD] [flags]",
        "List the presets, or those whose name contains WORD, and the commands of other "
        "packages; in short `coach -l`. With --trained: the trained agents that come with it.",
        run="main:list_presets",
        subject="word",
        limits="it lists what comes with it and does nothing else",
    ),
    Command(
        "new",
        "preset|environment|agent NAME [flags]",
        "Write a file to begin with, and its test: a preset, an environment, or an agent with a "
        "preset for it.",
        run="new:write_new",
        table=flags.NEW,
    ),
)


_FORMS = {
    "train --from": _one_run(
        "train",
        "--from RUN [flags]",
        run="train:repeat",
        flag_group="repeat",
        subject="source",
        limits="with --from it trains the experiment of a run again",
    ),
    "evaluate -p": _one_run(
        "evaluate",
        "-p PRESET [flags]",
        run="evaluate:evaluate_preset",
        flag_group="untrained",
        subject="preset",
        limits="agents are evaluated before any training, without a run folder",
    ),
}
"""Forms of commands that are meant where a flag is given, by command and flag."""


def commands_of(extension: Extension) -> dict[str, Command]:
    """The commands in an extension's table, by their names there."""
    return {
        name: Command(
            _FORM.sub("", name),
            fields["arguments"],
            fields["description"],
            run=fields.get("run", ""),
            table=fields.get("flags", ()),
            subject=fields.get("subject", ""),
            limits=fields.get("limits", ""),
            flag_group=fields.get("flag_group", ""),
            shown=fields.get("shown", ""),
            after_run=fields.get("after_run", ""),
        )
        for name, fields in extension.commands.items()
    }


_OF_EXTENSIONS = {
    name: command for each in own_extensions() for name, command in commands_of(each).items()
}
COMMANDS = {command.name: command for command in _ALL} | {
    name: command for name, command in _OF_EXTENSIONS.items() if not _FORM.search(name)
}
COACH = _one_run(
    "",
    "\n       ".join(
        (
            "train PRESET [flags]       or  coach -p PRESET [flags]",
            "coach train --from RUN [flags]",
            "coach resume RUN [flags]         or  coach -crd RUN [flags]",
            "coach fork RUN[@STEP] --as NAME [flags]",
            "coach evaluate RUN [flags]       or  coach --evaluate -crd RUN [flags]",
            "coach describe PRESET [flags]",
            "coach new preset|environment|agent NAME",
            *(command.shown for command in _OF_EXTENSIONS.values() if command.shown),
            "coach list [WORD] [--trained]    or  coach -l",
        )
    ),
    "Train, resume and evaluate experiments described by presets.",
)
_ALL_FORMS = _FORMS | {
    name: command for name, command in _OF_EXTENSIONS.items() if _FORM.search(name)
}
_ALIASES = {"run": "train"}
"""Other names of commands."""
_SUBJECTS = {
    "preset": ("a preset", "`coach list` shows the presets"),
    "run": ("a run", "a folder such as experiments/NAME/RUN"),
    "environment": ("an environment", "a task such as CartPole-v1 or my_module:MyEnv"),
}
"""Names of the subjects for messages, and an example of each."""
_CHOOSING = {
    "list": "list",
    "episodes": "evaluate",
    "run": "resume",
    "preset": "train",
    "source": "train",
}
"""Coach's short form: the command by the first of these flags that is given."""
_WORDS = [*dict.fromkeys(name.partition(" ")[0] for name in COMMANDS), "help"]
"""The words that a command begins with."""
TAKEN = (*_WORDS, *_ALIASES)
"""Names that no other package's command can have."""


def forms_of(name: str) -> dict[str, Command]:
    """The forms of a command, by the name of the flag with which each is meant."""
    found = (form.rpartition(" ") for form in _ALL_FORMS)
    return {_dest(flag): _ALL_FORMS[f"{of} {flag}"] for of, _, flag in found if of == name}


@cache
def _dest(spelling: str) -> str:
    """The name of the flag with this spelling."""
    return next(flag.dest for flag in RUNS if spelling in flag.spellings)


def parse_arguments(arguments: Sequence[str]) -> Given:
    """Read a command line.

    Args:
        arguments: Without the program's name.

    Raises:
        ConfigurationError: An unknown flag, a value that doesn't fit, a flag that the command
            would ignore, or flags that contradict each other.
        SystemExit: `--help` or `--version` was given and has been printed.
    """
    words = [
        underscored(word) if word.startswith("--") else word for word in _command_first(arguments)
    ]
    if words[:1] == ["help"]:
        words = [*map(_known_command, words[1:2]), "--help"]
    installed = _installed(words[0]) if words else {}
    name, words = _named(words, installed)
    command = installed.get(name) or COMMANDS.get(name, COACH)
    parser, given, rest = _read(command, words, also=_shown_with(name))
    added = parser.command.flags[len(command.flags) :]
    if name and not command.run:
        raise _incomplete(command, rest)
    name = name or _command_of(given.keys(), rest)
    command = installed.get(name) or COMMANDS[name]
    for dest, form in forms_of(name).items():
        if dest in given and (dest != "preset" or command.subject not in given):
            command = form
            break
    command = replace(command, table=(*command.flags, *added)) if added else command
    if name == "list":
        given.pop("list", None)  # which has named the command
    if rest and command.subject and command.subject not in given:
        subject = rest.pop(0)
        given[command.subject] = Path(subject) if command.subject == "run" else subject
    if rest:
        raise _unexpected(parser, words, rest)
    if "custom_parameter" in given:
        changes = given["custom_parameter"]
        assert isinstance(changes, list)
        given["custom_parameter"] = ";".join(changes)
    _check(name, command, given.keys())
    return Given(command, given)


def _read(
    command: Command, words: Sequence[str], *, also: Sequence[Command]
) -> tuple[Parser, dict[str, object], list[str]]:
    """The parser of a command line, the values of its flags, and the words that belong to none.

    The flags of installed extensions are read where one is unknown, and for the help of a
    command.
    """
    parser = Parser(command, also)
    if command.flags is not RUNS:
        return parser, *parser.read(words)
    try:
        _refuse_single_dash(parser, words)
        if not command.name or not {"-h", "--help"} & {*words}:
            return parser, *parser.read(words)
        unknown = None
    except UnknownNameError as error:
        unknown = error
    extensions = installed_extensions()[0]
    added = [flag for each in extensions for flag in _flags_of(each, parser.flags())]
    if unknown is not None and not added:
        raise unknown
    parser = Parser(replace(command, table=(*RUNS, *added)), also)
    _refuse_single_dash(parser, words)
    return parser, *parser.read(words)


def _flags_of(extension: Extension, known: Sequence[str]) -> Sequence[Flag]:
    """The flags of an installed extension.

    Raises:
        ConfigurationError: They cannot be imported, or one has the spelling of another flag.
    """
    whose = f"the extension '{extension.name}' ({extension.package})"
    try:
        added: Sequence[Flag] = found(extension.flags) if extension.flags else ()
        spellings = [spelling for flag in added for spelling in flag.spellings]
    except Exception as error:
        raise ConfigurationError(
            f"{whose} has flags that cannot be read, {extension.flags}: {in_one_line(error)}"
        ) from error
    for spelling in spellings:
        if spelling in known or spellings.count(spelling) > 1:
            raise ConfigurationError(f"{whose} declares the flag {spelling}, which is taken")
    return added


def _command_first(words: Sequence[str]) -> list[str]:
    """A command line whose command comes first, also where flags have been put before it."""
    valued = {word for flag in RUNS if flag.placeholder[:1] not in "[" for word in flag.spellings}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if underscored(words[at]) in valued else 1
    command = words[at] if at < len(words) else ""
    command = _ALIASES.get(command, command)
    return [command, *words[:at], *words[at + 1 :]] if command in _WORDS else list(words)


def _installed(word: str) -> dict[str, Command]:
    """The commands of the installed extension that has a first word; empty where it is ours."""
    if word.startswith("-") or word in TAKEN:
        return {}
    for extension in installed_extensions()[0]:
        commands = commands_of(extension)
        if any(name.partition(" ")[0] == word for name in commands):
            return commands
    return {}


def _named(words: list[str], installed: Mapping[str, Command]) -> tuple[str, list[str]]:
    """The command that the words name, of one word or two, and the other words."""
    if not words or (words[0] not in _WORDS and words[0] not in installed):
        return "", words
    name = words[0]
    rest = words[1:]
    below = next((word for word in rest if not word.startswith("-")), "")
    if f"{name} {below}" in COMMANDS or f"{name} {below}" in installed:
        rest.remove(below)
        return f"{name} {below}", rest
    return name, rest


def _shown_with(name: str) -> list[Command]:
    """Other commands whose flags the help of this one shows."""
    if not name:
        shared = [each for each in COMMANDS.values() if each.limits]
        return [*shared, *(form for each in COMMANDS for form in forms_of(each).values())]
    return [*forms_of(name).values()]


def _incomplete(command: Command, rest: Sequence[str]) -> ConfigurationError:
    """The error about the first word of commands, where the second is missing or unknown."""
    start = f"{command.name} "
    known = [name.removeprefix(start) for name in COMMANDS if name.startswith(start)]
    if rest:
        return UnknownNameError("command", rest[0], known, where=f"of `{command.prog}`")
    needed = command.arguments.removesuffix(" [flags]").rpartition(" ")[2]
    return ConfigurationError(f"`{command.prog}` needs one of {', '.join(known)}, and {needed}")


def _known_command(word: str) -> str:
    if word not in _WORDS:
        near = names_here("commands").get(word, ())
        raise UnknownNameError("command", word, _WORDS, "`coach --help` shows all", near)
    return word


def _command_of(given: Collection[str], rest: Sequence[str]) -> str:
    """The command that the flags of the short form name."""
    named = [name for flag, name in _CHOOSING.items() if flag in given]
    if named:
        return named[0]
    if not rest:
        raise ConfigurationError(
            "nothing to do; give -p PRESET, -crd RUN or -l (`coach --help` shows all flags)"
        )
    word = rest[0]
    by_lower = {preset.lower(): preset for preset in any_task_presets() | shipped_presets()}
    if word.lower() in by_lower or word.endswith(".py"):
        preset = by_lower.get(word.lower(), word)
        raise ConfigurationError(f"'{word}' is a preset; did you mean `coach train {preset}`?")
    if Path(word).is_dir():
        raise ConfigurationError(f"'{word}' is a folder; did you mean `coach resume {word}`?")
    presets = [f"train {preset}" for preset in near_names(word, by_lower.values())]
    near = names_here("commands").get(word) or near_names(word, _WORDS) or presets
    raise UnknownNameError("command", word, _WORDS, "`coach --help` shows all", near)


def _check(name: str, command: Command, given: Collection[str]) -> None:
    """Refuse flags that would be ignored, and a command without its subject."""
    if not command.subject:
        return
    every = {flag.dest: flag for flag in reversed(command.flags)}
    taken = {flag.dest for flag in command.taken()} | {command.subject, "plain", "debug"}
    for ignored in (dest for dest in given if dest not in taken):
        spelling = every[ignored].spellings[0]
        takers = every[ignored].of.split()
        for form, of in _ALL_FORMS.items():
            start, _, meant_by = form.rpartition(" ")
            is_plain = command is COMMANDS.get(name)
            of_form = {*of.flag_group.split()} & {*takers}
            if is_plain and start == name and of_form and meant_by != "-p":
                problem = f"{spelling} belongs to {of.prog} {meant_by}"
                raise ConfigurationError(f"{problem}; give {meant_by}, too")
        raise ConfigurationError(
            f"`coach {name}` ignores {spelling}: {command.limits}; leave it out"
        )
    if command.subject not in given and command.subject in _SUBJECTS:
        subject, advice = _SUBJECTS[command.subject]
        usage = command.usage.removesuffix(" [flags]")
        raise ConfigurationError(f"`coach {name}` needs {subject}: {usage} ({advice})")
    for flag in (every[dest] for dest in given if dest in every):
        needed = [each for each in command.flags if {*each.spellings} & {*flag.needs.split()}]
        if needed and not any(each.dest in given for each in needed):
            others = " or ".join(flag.needs.split())
            raise ConfigurationError(
                f"{flag.spellings[0]} has no effect without {others}; give that, too, or leave it "
                "out"
            )


def _unexpected(parser: Parser, words: Sequence[str], rest: Sequence[str]) -> ConfigurationError:
    """The error about words that belong to no flag."""
    before = words[: words.index(rest[0])]
    flag = next((word for word in reversed(before) if word.startswith("-")), "")
    unexpected = f"unexpected argument '{rest[0]}'"
    several = f"{flag}s"
    if several in parser.flags():
        joined = ",".join([before[-1], *rest])
        return ConfigurationError(
            f"{unexpected}: {flag} takes one value; for several give {several} {joined}"
        )
    declared = next((each for each in parser.command.flags if flag in each.spellings), None)
    if declared is not None and declared.separator:
        apart = declared.separator
        joined = apart.join([before[-1], *rest])
        quoted = f'"{joined}"' if " " in joined else joined
        return ConfigurationError(
            f"{unexpected}: several are one argument, separated by '{apart.strip()}': {flag} "
            f"{quoted}"
        )
    for each in parser.command.flags:
        if each.left_out and re.match(each.left_out, rest[0]):
            value = " ".join(rest)
            return ConfigurationError(f'{unexpected}; did you mean {each.spellings[0]} "{value}"?')
    if re.match(r"[A-Za-z_][\w.]*=", rest[0]):
        return ConfigurationError(f'{unexpected}; changes follow -cp: -cp "{rest[0]}"')
    if "-lvl" in parser.flags() and not flag:
        return ConfigurationError(f"{unexpected}; a task follows -lvl: -lvl {rest[0]}")
    return ConfigurationError(f"{unexpected}; `{parser.prog} --help` shows what may stand there")


def _refuse_single_dash(parser: Parser, words: Sequence[str]) -> None:
    """Refuse `-seed 1`, which argparse would read as `-s eed`."""
    for word in words:
        flag = word.partition("=")[0]
        if re.fullmatch(r"-[A-Za-z][A-Za-z_]+", flag) and flag not in parser.flags():
            raise parser.unknown(flag, words)
