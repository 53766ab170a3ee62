"""The commands of `coach`, and the reading of a command line into one of them.

A command is named (`coach resume RUN`) or follows from its flags, as in Coach (`coach -crd RUN`).
To add one, describe it here; its flags stand in `flags`. Light on purpose, like `parser`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from coach_rl.cli import flags, study_flags
from coach_rl.cli.parser import Command, Given, Parser, underscored, unknown_flag
from coach_rl.configuration.presets import shipped_presets
from coach_rl.core import familiar_names
from coach_rl.core.errors import ConfigurationError, UnknownNameError, near_names

_one_run = partial(Command, flags=flags.RUNS)
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
        "check",
        "ENVIRONMENT [flags]",
        "Try an environment with random actions and report which promises it keeps: "
        "seeds, spaces, ends, saving, speed. ENVIRONMENT is a task such as CartPole-v1 or "
        "my_module:MyEnv; with -p PRESET instead: the one that a preset trains in.",
        run="check:check",
        subject="environment",
        limits="it tries an environment and trains nothing",
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
        "play",
        "RUN [flags]",
        "Show a trained agent in a window, acting greedily, or write a video.",
        run="evaluate:play",
        flags=flags.PLAY,
    ),
    Command(
        "card",
        "RUN [flags]",
        "Write a run's policy into a folder that a model hub takes as it is: a card, weights as "
        "safetensors, the manifest and a film. Nothing is sent anywhere.",
        run="card:write_card",
        flags=flags.CARD,
    ),
    Command(
        "export",
        "RUN FILE [flags]",
        "Write the policy of a run to a file that acts without this package: FILE.zip holds any "
        "stack of levels as ONNX graphs with a runtime, FILE.onnx or FILE.pt2 the graph of one "
        "agent. Needs the extra `export`.",
        run="export:export_policy",
        flags=flags.EXPORT,
    ),
    Command(
        "compare",
        "FOLDER FOLDER ... [flags]  or  coach compare STUDY.py [flags]",
        "Compare groups of runs: by how much they differ, with a 95 % interval over "
        "seeds, and the probability that a run of one scores higher than one of the other. Where "
        "the interval holds zero, no difference is reported.",
        run="compare:compare_groups",
        flags=study_flags.COMPARE,
    ),
    Command(
        "plot",
        "FOLDER ... [flags]  or  coach plot STUDY.py [flags]",
        "Draw the evaluations of runs, grouped by folder or by a study's variants: "
        "curves with a 95 % band over seeds, success of each level of a hierarchy, performance "
        "profiles, probabilities of improvement. Writes PNG, SVG, CSV and Markdown.",
        run="compare:plot",
        flags=study_flags.PLOT,
    ),
    Command(
        "report",
        "STUDY.py [flags]  or  coach report FOLDER ... [flags]",
        "Write the report of a study, or of groups of runs in folders, as one HTML "
        "file with its pictures inside: the answer, tables with intervals, curves, resources, how "
        "to make each run again. It opens without a server or a network.",
        run="compare:report",
        flags=study_flags.REPORT,
    ),
    Command(
        "study run",
        "FILE [flags]",
        "Make the runs of a study that are missing.",
        run="studies:run_study",
        flags=study_flags.STUDY_RUN,
    ),
    Command(
        "study status",
        "FILE [flags]",
        "Show the state of each run of a study.",
        run="studies:show_status",
        flags=study_flags.STUDY,
    ),
    Command(
        "study report",
        "FILE [flags]",
        "Print the tables of a study.",
        run="studies:print_report",
        flags=study_flags.STUDY_REPORT,
    ),
    Command(
        "study export",
        "FILE [flags]",
        "Write the records of scored runs into one file.",
        run="studies:export_records",
        flags=study_flags.STUDY_EXPORT,
    ),
    Command(
        "study import",
        "ARCHIVE [flags]",
        "Make run folders of records, for the tables.",
        run="studies:import_records",
        flags=study_flags.STUDY_IMPORT,
    ),
    Command(
        "new",
        "preset|environment|agent NAME [flags]",
        "Write a file to begin with, and its test: a preset, an environment, or an agent with a "
        "preset for it.",
        run="new:write_new",
        flags=flags.NEW,
    ),
    Command(
        "runs",
        "[FOLDER] [flags]\n       coach runs rm RUN ... [--yes] [flags]",
        "List the runs in a folder, however deep: state, steps, best and last "
        "evaluation, size with checkpoints, age. `coach runs rm` deletes runs with all they hold; "
        "it refuses those that a process works on.",
        run="runs:show_runs",
        flags=flags.LIST_RUNS,
    ),
    Command(
        "runs rm",
        "RUN ... [--yes] [flags]",
        "Delete runs with all they hold, but none that a process works on.",
        run="runs:delete_runs",
        flags=flags.DELETE_RUNS,
    ),
    Command(
        "watch",
        "[RUN ...] [flags]",
        "Show the progress of a run of another process or host until it ends. "
        "Exit code 1 if it failed.",
        run="runs:watch_runs",
        flags=flags.WATCH,
    ),
    Command(
        "dashboard",
        "[FOLDER ...] [flags]",
        "Start TensorBoard on runs, experiments or studies, and print its address. "
        "Runs that are still training, and new runs in the folder, are followed.",
        run="runs:show_dashboard",
        flags=flags.DASHBOARD,
    ),
    Command(
        "selftest",
        "[flags]",
        "Try the installation in half a minute: train and resume a small run, and play the trained "
        "agents that come with it.",
        run="selftest:selftest",
    ),
    Command(
        "sweep",
        "-p PRESET [--search SPACE] [--trials N] [flags]",
        "Search for better settings of a preset, and train the best few and the preset "
        "as it is again from fresh seeds. The same command again continues a sweep that was "
        "stopped, and works on one that is running.",
        run="studies:sweep_preset",
        flags=study_flags.SWEEP,
        subject="preset",
    ),
)
COMMANDS = {command.name: command for command in _ALL}
SEEDS = _one_run(
    "train",
    "PRESET --seeds SEEDS [flags]",
    run="studies:train_seeds",
    flag_group="seeds",
    subject="preset",
    limits="with --seeds it begins a run for each of them, in a process of its own",
)
REPEAT = _one_run(
    "train",
    "--from RUN [flags]",
    run="train:repeat",
    flag_group="repeat",
    subject="source",
    limits="with --from it trains the experiment of a run again",
)
UNTRAINED = _one_run(
    "evaluate",
    "-p PRESET [flags]",
    run="evaluate:evaluate_preset",
    flag_group="untrained",
    subject="preset",
    limits="agents are evaluated before any training, without a run folder",
)
CHECK_PRESET = _one_run(
    "check",
    "-p PRESET [flags]",
    run="check:check_preset",
    flag_group="check_preset",
    subject="preset",
    limits="it tries the preset's environment and trains nothing",
)
COACH = _one_run(
    "",
    """train PRESET [flags]       or  coach -p PRESET [flags]
       coach train --from RUN [flags]
       coach resume RUN [flags]         or  coach -crd RUN [flags]
       coach fork RUN[@STEP] --as NAME [flags]
       coach evaluate RUN [flags]       or  coach --evaluate -crd RUN [flags]
       coach play RUN [--to FILE] [flags]
       coach card RUN [--to FOLDER]
       coach export RUN FILE [flags]
       coach describe PRESET [flags]
       coach check ENVIRONMENT          or  coach check -p PRESET
       coach new preset|environment|agent NAME
       coach study run|status|report FILE
       coach report STUDY.py|FOLDER ...
       coach compare FOLDER FOLDER ...  or  coach compare STUDY.py
       coach plot FOLDER ...            or  coach plot STUDY.py
       coach dashboard [FOLDER ...]
       coach runs [FOLDER]              or  coach runs rm RUN ...
       coach sweep -p PRESET [--search SPACE] [flags]
       coach watch [RUN]
       coach selftest
       coach list [WORD] [--trained]    or  coach -l""",
    "Train, resume and evaluate experiments described by presets.",
)
STUDY = Command(
    "study",
    "run|status|report|export|import FILE [flags]",
    "Many runs that answer one question: run those that are missing, show the state of each, print "
    "the tables, export the records of scored runs into one file, or import such a file.",
)
_ALIASES = {"run": "train"}
"""Other names of commands."""
_OF_PRESET = {"evaluate": UNTRAINED, "check": CHECK_PRESET}
"""Commands with -p PRESET instead of their subject, by name."""
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


def parse_arguments(arguments: Sequence[str]) -> Given:
    """Read a command line.

    Args:
        arguments: Without the program's name.

    Raises:
        ConfigurationError: An unknown flag, a value that doesn't fit, a flag that the command
            would ignore, or flags that contradict each other.
        SystemExit: `--help` or `--version` was given and has been printed.
    """
    words = [underscored(word) for word in _command_first(arguments)]
    if words[:1] == ["help"]:
        words = [*map(_known_command, words[1:2]), "--help"]
    name, words = _named(words)
    command = COMMANDS.get(name, STUDY if name == "study" else COACH)
    parser = Parser(command, also=_shown_with(name))
    if command.flags is flags.RUNS:
        _refuse_single_dash(parser, words)
    given, rest = parser.read(words)
    if command is STUDY:
        raise _wrong_study(rest)
    name = name or _command_of(given, rest)
    command = COMMANDS[name]
    if name in _OF_PRESET and "preset" in given and command.subject not in given:
        command = _OF_PRESET[name]
    if name == "train" and ("seeds" in given or "source" in given):
        command = REPEAT if "source" in given else SEEDS
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
    _check(name, command, given)
    return Given(command, given)


def _command_first(words: Sequence[str]) -> list[str]:
    """A command line whose command comes first, also where flags have been put before it."""
    valued = {
        word for flag in flags.RUNS if flag.placeholder[:1] not in "[" for word in flag.spellings
    }
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if underscored(words[at]) in valued else 1
    command = words[at] if at < len(words) else ""
    command = _ALIASES.get(command, command)
    return [command, *words[:at], *words[at + 1 :]] if command in _WORDS else list(words)


def _named(words: list[str]) -> tuple[str, list[str]]:
    """The command that the words name, of one word or two, and the other words."""
    if not words or words[0] not in _WORDS:
        return "", words
    name, rest = words[0], words[1:]
    below = next((word for word in rest if not word.startswith("-")), "")
    if f"{name} {below}" in COMMANDS:
        rest.remove(below)
        return f"{name} {below}", rest
    return name, rest


def _shown_with(name: str) -> list[Command]:
    """Other commands whose flags the help of this one shows."""
    if not name:
        return [*(each for each in _ALL if each.limits), SEEDS, REPEAT, UNTRAINED, CHECK_PRESET]
    return [SEEDS, REPEAT] if name == "train" else [_OF_PRESET[name]] if name in _OF_PRESET else []


def _wrong_study(rest: Sequence[str]) -> ConfigurationError:
    known = [each.partition(" ")[2] for each in COMMANDS if each[:6] == "study "]
    if rest:
        return UnknownNameError("command", rest[0], known, where="of `coach study`")
    return ConfigurationError(f"`coach study` needs one of {', '.join(known)}, and FILE")


def _known_command(word: str) -> str:
    if word not in _WORDS:
        near = familiar_names.COMMANDS.get(word, ())
        raise UnknownNameError("command", word, _WORDS, "`coach --help` shows all", near)
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
    presets = [f"train {preset}" for preset in near_names(word, by_lower.values())]
    near = familiar_names.COMMANDS.get(word) or near_names(word, _WORDS) or presets
    raise UnknownNameError("command", word, _WORDS, "`coach --help` shows all", near)


def _check(name: str, command: Command, given: Mapping[str, object]) -> None:
    """Refuse flags that would be ignored, and a command without its subject."""
    if not command.subject:
        return
    every = {flag.dest: flag for flag in reversed(command.flags)}
    taken = {flag.dest for flag in command.taken()} | {command.subject, "plain", "debug"}
    for ignored in (dest for dest in given if dest not in taken):
        spelling, takers = every[ignored].spellings[0], every[ignored].of.split()
        if command is COMMANDS["train"] and SEEDS.flag_group in takers:
            raise ConfigurationError(f"{spelling} is about several runs; give --seeds, too")
        raise ConfigurationError(
            f"`coach {name}` ignores {spelling}: {command.limits}; leave it out"
        )
    if command.subject not in given and command.subject in _SUBJECTS:
        subject, advice = _SUBJECTS[command.subject]
        usage = command.usage.removesuffix(" [flags]")
        raise ConfigurationError(f"`coach {name}` needs {subject}: {usage} ({advice})")
    for flag in (every[dest] for dest in given if dest in every):
        is_about_films = isinstance(flag.sets, str) and flag.sets.startswith("VideoParameters.")
        if is_about_films and "dump_gifs" not in given and "dump_mp4" not in given:
            raise ConfigurationError(
                f"neither -dg nor -dm requests a video; leave out {flag.spellings[0]}"
            )


def _unexpected(parser: Parser, words: Sequence[str], rest: Sequence[str]) -> ConfigurationError:
    """The error about words that belong to no flag."""
    before = words[: words.index(rest[0])]
    flag = next((word for word in reversed(before) if word.startswith("-")), "")
    unexpected = f"unexpected argument '{rest[0]}'"
    if flag == "--seed":
        return ConfigurationError(
            f"{unexpected}: --seed takes one number; for several runs give --seeds "
            f"{before[-1]},{','.join(rest)}"
        )
    if flag == "--seeds":
        return ConfigurationError(
            f"{unexpected}: seeds are one argument, separated by ',': --seeds "
            f"{','.join([before[-1], *rest])}"
        )
    if flag in ("-cp", "--custom_parameter"):
        changes = "; ".join([before[-1], *rest])
        return ConfigurationError(
            f"{unexpected}: changes are one argument, separated by ';': {flag} \"{changes}\""
        )
    if re.match(r"[A-Za-z_][\w.]*=", rest[0]):
        return ConfigurationError(f'{unexpected}; changes follow -cp: -cp "{rest[0]}"')
    return ConfigurationError(f"{unexpected}; `{parser.prog} --help` shows what may stand there")


def _refuse_single_dash(parser: Parser, words: Sequence[str]) -> None:
    """Refuse `-seed 1`, which argparse would read as `-s eed`."""
    for word in words:
        flag = word.partition("=")[0]
        if re.fullmatch(r"-[A-Za-z][A-Za-z_]+", flag) and flag not in parser.flags():
            raise unknown_flag(flag, parser.flags(), "`coach --help` shows all")
