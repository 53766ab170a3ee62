"""Conversion of a command line to the settings of one command.

A command is named (`coach resume RUN`) or follows from its flags, as in Coach (`coach -crd RUN`).
The parser knows every flag, so one that the command would ignore is refused by its name.

Light on purpose: nothing here or in what it imports needs torch, so `--help` and a mistyped flag
answer at once.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path

from coach_rl.cli.flags import all_flags, flag_of, flag_parser, show_only
from coach_rl.cli.settings import (
    CheckEnvironment,
    CheckPreset,
    Describe,
    Evaluate,
    EvaluateUntrained,
    Film,
    Fork,
    ListPresets,
    Resume,
    Settings,
    Train,
    TrainSeeds,
)
from coach_rl.cli.subcommands import SUBCOMMANDS, underscored, unknown_flag
from coach_rl.configuration.presets import shipped_presets
from coach_rl.core.errors import ConfigurationError, UnknownNameError, near_names


@dataclass(frozen=True)
class _Command:
    usage: str
    description: str
    kind: type[Settings]
    subject: str
    """The field that a word without a flag fills."""
    limits: str
    """The reason why it takes no other flags."""


_COMMANDS = {
    "train": _Command(
        "coach train PRESET",
        "Train a preset's experiment in a new run folder; in short `coach -p PRESET`, also `coach "
        "run PRESET`.",
        Train,
        "preset",
        "it begins a new run",
    ),
    "resume": _Command(
        "coach resume RUN",
        "Resume a run exactly where it stopped; in short `coach -crd RUN`.",
        Resume,
        "run",
        "the run is rebuilt from its manifest and keeps its seed (coach fork changes runs)",
    ),
    "fork": _Command(
        "coach fork RUN[@STEP] --as NAME",
        "Train a new run that starts from another one's state, with changed parameters; the other "
        "one stays as it is.",
        Fork,
        "run",
        "a fork continues from the run's state, which belongs to its environments",
    ),
    "evaluate": _Command(
        "coach evaluate RUN",
        "Evaluate a run greedily; in short `coach --evaluate -crd RUN`. With -p PRESET instead of "
        "RUN: a preset's agents before any training.",
        Evaluate,
        "run",
        "it trains nothing, and rebuilds the run from its manifest",
    ),
    "describe": _Command(
        "coach describe PRESET",
        "Print a preset's control panel, resolved parameters, levels and networks.",
        Describe,
        "preset",
        "it only builds the experiment",
    ),
    "check": _Command(
        "coach check ENVIRONMENT",
        "Try an environment with random actions and say which promises it keeps: seeds, spaces, "
        "ends, saving, speed. ENVIRONMENT is a level such as CartPole-v1 or my_module:MyEnv; with "
        "-p PRESET instead: the one that a preset trains in.",
        CheckEnvironment,
        "environment",
        "it tries an environment and trains nothing",
    ),
    "list": _Command(
        "coach list [WORD]",
        "List the shipped presets, or those whose name contains WORD; in short `coach -l`.",
        ListPresets,
        "word",
        "it lists the presets and does nothing else",
    ),
}
_ALIASES = {"run": "train"}
"""Other names of commands."""
_UNTRAINED = _Command(
    "coach evaluate -p PRESET",
    "",
    EvaluateUntrained,
    "preset",
    "agents are evaluated before any training, without a run folder",
)
_CHECKED_PRESET = _Command(
    "coach check -p PRESET",
    "",
    CheckPreset,
    "preset",
    "it tries the preset's environment and trains nothing",
)
_SEEDS = _Command(
    "coach train PRESET --seeds SEEDS",
    "",
    TrainSeeds,
    "preset",
    "with --seeds it begins a run for each of them, in a process of its own",
)
_OF_PRESET = {"evaluate": _UNTRAINED, "check": _CHECKED_PRESET}
"""Commands with -p PRESET instead of their subject, by name."""
_SUBJECTS = {
    "preset": ("a preset", "`coach list` shows the presets"),
    "run": ("a run", "a folder such as experiments/NAME/RUN"),
    "environment": ("an environment", "a level such as CartPole-v1 or my_module:MyEnv"),
}
"""Names of the subjects for messages, and an example of each."""
_CHOOSING = {"list": "list", "episodes": "evaluate", "run": "resume", "preset": "train"}
"""Coach's short form: the command by the first of these flags that is given."""
_USAGE = """coach train PRESET [flags]       or  coach -p PRESET [flags]
       coach resume RUN [flags]         or  coach -crd RUN [flags]
       coach fork RUN[@STEP] --as NAME [flags]
       coach evaluate RUN [flags]       or  coach --evaluate -crd RUN [flags]
       coach play RUN [--to FILE] [flags]
       coach describe PRESET [flags]
       coach check ENVIRONMENT
       coach study run|status|report FILE
       coach report STUDY.py|FOLDER ...
       coach compare FOLDER FOLDER ...  or  coach compare STUDY.py
       coach plot FOLDER ...            or  coach plot STUDY.py
       coach dashboard [FOLDER ...]
       coach runs [FOLDER]              or  coach runs rm RUN ...
       coach sweep -p PRESET [--search SPACE] [flags]
       coach watch [RUN]
       coach list [WORD]                or  coach -l"""


def parse_arguments(arguments: Sequence[str]) -> Settings:
    """Read a command line.

    Args:
        arguments: Without the program's name.

    Raises:
        ConfigurationError: An unknown flag, a value that doesn't fit, a flag that the command
            would ignore, or flags that contradict each other.
        SystemExit: `--help` or `--version` was asked for and has been printed.
    """
    words = [underscored(word) for word in arguments]
    if words[:1] == ["help"]:
        words = [*map(_known_command, words[1:2]), "--help"]
    name = words.pop(0) if words and words[0] in _COMMANDS else None
    parser = _parser(name)
    _refuse_single_dash(parser, words)
    namespace, rest = parser.parse_known_args(words)
    for word in rest:
        if word.startswith("-"):
            raise _unknown_flag(parser, word.partition("=")[0])
    given = vars(namespace)
    name = name or _command_of(given, rest)
    command = _COMMANDS[name]
    if name in _OF_PRESET and "preset" in given and command.subject not in given:
        command = _OF_PRESET[name]
    if name == "train" and "seeds" in given:
        command = _SEEDS
    if rest and command.subject not in given:
        subject = rest.pop(0)
        given[command.subject] = Path(subject) if command.subject == "run" else subject
    if rest:
        raise _unexpected(words, rest)
    if "custom_parameter" in given:
        given["custom_parameter"] = ";".join(given["custom_parameter"])
    # `main` reads --debug, -l names the command, and most output is plain lines anyway.
    for understood in {"debug", "plain", *(["list"] * (name == "list"))} - _names(command.kind):
        given.pop(understood, None)
    _check(parser, name, command, given)
    settings = _filled(command.kind, given)
    assert isinstance(settings, Settings)
    return settings


def command_first(words: Sequence[str]) -> list[str]:
    """A command line whose command comes first, also where flags have been put before it."""
    flags = {
        flag: each
        for each in flag_parser(prog="", usage="", description="")._actions
        for flag in each.option_strings
    }
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag, equals, _ = underscored(words[at]).partition("=")
        action = flags.get(flag)
        takes_value = action is not None and action.nargs is None and not equals
        at += 2 if takes_value else 1
    command = words[at] if at < len(words) else ""
    command = _ALIASES.get(command, command)
    is_command = command in (*_COMMANDS, *SUBCOMMANDS, "help")
    return [command, *words[:at], *words[at + 1 :]] if is_command else list(words)


def _known_command(word: str) -> str:
    if word not in _COMMANDS:
        known = [*_COMMANDS, *SUBCOMMANDS]
        raise UnknownNameError("command", word, known, "`coach --help` shows all")
    return word


def _command_of(given: Mapping[str, object], rest: Sequence[str]) -> str:
    """The command that the flags of the short form name."""
    named = [name for flag, name in _CHOOSING.items() if flag in given]
    if named:
        return named[0]
    if not rest:
        raise ConfigurationError(
            "nothing to do; give -p PRESET, -crd RUN or -l (`coach --help` shows all flags)"
        )
    word = rest[0]
    by_lower = {preset.lower(): preset for preset in shipped_presets()}
    if word.lower() in by_lower or word.endswith(".py"):
        preset = by_lower.get(word.lower(), word)
        raise ConfigurationError(f"'{word}' is a preset; did you mean `coach train {preset}`?")
    if Path(word).is_dir():
        raise ConfigurationError(f"'{word}' is a folder; did you mean `coach resume {word}`?")
    known = [*_COMMANDS, *SUBCOMMANDS, "help"]
    presets = [f"train {preset}" for preset in near_names(word, by_lower.values())]
    near = near_names(word, known) or presets
    raise UnknownNameError("command", word, known, "`coach --help` shows all", near)


def _check(
    parser: argparse.ArgumentParser, name: str, command: _Command, given: Mapping[str, object]
) -> None:
    """Refuse flags that would be ignored, and a command without its subject."""
    taken = _names(command.kind)
    for ignored in (flag for flag in given if flag not in taken):
        flag = flag_of(parser, ignored)
        if command is _COMMANDS["train"] and ignored in _names(TrainSeeds):
            raise ConfigurationError(f"{flag} is about several runs; give --seeds, too")
        raise ConfigurationError(f"`coach {name}` ignores {flag}: {command.limits}; leave it out")
    if command.subject not in given and command.kind is not ListPresets:
        subject, advice = _SUBJECTS[command.subject]
        raise ConfigurationError(f"`coach {name}` needs {subject}: {command.usage} ({advice})")
    if "dump_gifs" not in given and "dump_mp4" not in given:
        for unused in _names(Film) & given.keys():
            flag = flag_of(parser, unused)
            raise ConfigurationError(f"no video is asked for by -dg or -dm; leave out {flag}")


def _unexpected(words: Sequence[str], rest: Sequence[str]) -> ConfigurationError:
    """The error about words that belong to no flag."""
    before = words[: words.index(rest[0])]
    flag = next((word for word in reversed(before) if word.startswith("-")), "")
    if flag == "--seed":
        return ConfigurationError(
            f"unexpected argument '{rest[0]}': --seed takes one number; for several runs give "
            f"--seeds {before[-1]},{','.join(rest)}"
        )
    if flag == "--seeds":
        return ConfigurationError(
            f"unexpected argument '{rest[0]}': seeds are one argument, separated by ',': "
            f"--seeds {','.join([before[-1], *rest])}"
        )
    if flag in ("-cp", "--custom_parameter"):
        changes = "; ".join([before[-1], *rest])
        return ConfigurationError(
            f"unexpected argument '{rest[0]}': changes are one argument, separated by ';': "
            f'{flag} "{changes}"'
        )
    if re.match(r"[A-Za-z_][\w.]*=", rest[0]):
        return ConfigurationError(
            f"unexpected argument '{rest[0]}'; changes follow -cp: -cp \"{rest[0]}\""
        )
    return ConfigurationError(
        f"unexpected argument '{rest[0]}'; `coach --help` shows what may stand there"
    )


def _refuse_single_dash(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse `-seed 1`, which argparse would read as `-s eed`."""
    for word in words:
        flag = word.partition("=")[0]
        if re.fullmatch(r"-[A-Za-z][A-Za-z_]+", flag) and flag not in all_flags(parser):
            raise _unknown_flag(parser, flag)


def _unknown_flag(parser: argparse.ArgumentParser, flag: str) -> UnknownNameError:
    return unknown_flag(flag, all_flags(parser), "`coach --help` shows all")


def _names(kind: type) -> set[str]:
    """The flags from which settings are filled."""
    names = set()
    for each in fields(kind):
        if isinstance(each.type, type) and is_dataclass(each.type):
            names |= _names(each.type)
        else:
            names.add(each.name)
    return names


def _filled(kind: type, given: Mapping[str, object]) -> object:
    values = {}
    for each in fields(kind):
        if isinstance(each.type, type) and is_dataclass(each.type):
            values[each.name] = _filled(each.type, given)
        elif each.name in given:
            values[each.name] = given[each.name]
    return kind(**values)


def _parser(name: str | None) -> argparse.ArgumentParser:
    """The parser of all flags, whose help shows those of a command; None: of all commands."""
    if name is None:
        description = "Train, resume and evaluate experiments described by presets."
        return flag_parser(prog="coach", usage=_USAGE, description=description)
    command = _COMMANDS[name]
    parser = flag_parser(
        prog=f"coach {name}", usage=f"{command.usage} [flags]", description=command.description
    )
    others = {**_OF_PRESET, "train": _SEEDS}
    shown = _names(others[name].kind) if name in others else set()
    show_only(parser, _names(command.kind) | shown | {"plain", "debug", "help"})
    return parser
