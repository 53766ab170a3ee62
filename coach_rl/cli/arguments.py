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

import coach_rl
from coach_rl.cli.settings import (
    DEFAULT_EPISODES,
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
)
from coach_rl.cli.subcommands import SUBCOMMANDS, Parser, underscored
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.experiment.presets import shipped_presets


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
        "Train a preset's experiment in a new run folder; in short `coach -p PRESET`.",
        Train,
        "preset",
        "it begins a new run",
    ),
    "resume": _Command(
        "coach resume RUN",
        "Resume a run exactly where it stopped; in short `coach -crd RUN`.",
        Resume,
        "run",
        "the run is rebuilt from its manifest and keeps its seed",
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
       coach describe PRESET [flags]
       coach check ENVIRONMENT
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
    if rest and command.subject not in given:
        subject = rest.pop(0)
        given[command.subject] = Path(subject) if command.subject == "run" else subject
    if rest:
        raise _unexpected(words, rest)
    given.pop("debug", None)  # read in `main`
    if "custom_parameter" in given:
        given["custom_parameter"] = ";".join(given["custom_parameter"])
    if name == "list":
        given.pop("list", None)
    _check(parser, name, command, given)
    settings = _filled(command.kind, given)
    assert isinstance(settings, Settings)
    return settings


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
    raise UnknownNameError("command", word, known, "`coach --help` shows all")


def _check(
    parser: argparse.ArgumentParser, name: str, command: _Command, given: Mapping[str, object]
) -> None:
    """Refuse flags that would be ignored, and a command without its subject."""
    taken = _names(command.kind)
    for ignored in (flag for flag in given if flag not in taken):
        flag = _flag_of(parser, ignored)
        raise ConfigurationError(f"`coach {name}` ignores {flag}: {command.limits}; leave it out")
    if command.subject not in given and command.kind is not ListPresets:
        subject, advice = _SUBJECTS[command.subject]
        raise ConfigurationError(f"`coach {name}` needs {subject}: {command.usage} ({advice})")
    if "dump_gifs" not in given and "dump_mp4" not in given:
        for unused in _names(Film) & given.keys():
            flag = _flag_of(parser, unused)
            raise ConfigurationError(f"no video is asked for by -dg or -dm; leave out {flag}")


def _unexpected(words: Sequence[str], rest: Sequence[str]) -> ConfigurationError:
    """The error about words that belong to no flag."""
    before = words[: words.index(rest[0])]
    flag = next((word for word in reversed(before) if word.startswith("-")), "")
    if flag == "--seed":
        return ConfigurationError(
            f"unexpected argument '{rest[0]}': --seed takes one number; start one run for each seed"
        )
    if flag in ("-cp", "--custom_parameter"):
        changes = "; ".join([before[-1], *rest])
        return ConfigurationError(
            f"unexpected argument '{rest[0]}': changes are one argument, separated by ';': "
            f'{flag} "{changes}"'
        )
    return ConfigurationError(
        f"unexpected argument '{rest[0]}'; `coach --help` shows what may stand there"
    )


def _refuse_single_dash(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse `-seed 1`, which argparse would read as `-s eed`."""
    for word in words:
        flag = word.partition("=")[0]
        if re.fullmatch(r"-[A-Za-z][A-Za-z_]+", flag) and flag not in _all_flags(parser):
            raise _unknown_flag(parser, flag)


def _unknown_flag(parser: argparse.ArgumentParser, flag: str) -> UnknownNameError:
    flags = _all_flags(parser)
    near = [f"-{flag}"] if f"-{flag}" in flags else []
    return UnknownNameError("flag", flag, flags, "`coach --help` shows all", near=near)


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
    command = None if name is None else _COMMANDS[name]
    parser = Parser(
        prog="coach" if command is None else f"coach {name}",
        usage=_USAGE if command is None else f"{command.usage} [flags]",
        description="Train, resume and evaluate experiments described by presets."
        if command is None
        else command.description,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    what = parser.add_argument_group("what to run")
    what.add_argument(
        "-p",
        "--preset",
        metavar="PRESET",
        help="a shipped preset's name, FILE.py, or either with :FUNCTION",
    )
    what.add_argument("-l", "--list", action="store_true", help="list the shipped presets")
    what.add_argument(
        "-crd",
        "--checkpoint_restore",
        metavar="RUN",
        dest="run",
        type=Path,
        help="resume a run: its folder (last checkpoint), one of its checkpoints, RUN@STEP, or a "
        "folder of runs (the newest)",
    )
    what.add_argument(
        "--last_good",
        action="store_true",
        help="take the run's newest checkpoint that can be read",
    )
    what.add_argument(
        "--drop_later",
        action="store_true",
        help="delete the checkpoints and logs after the one resumed from",
    )
    what.add_argument(
        "--evaluate",
        "--episodes",
        dest="episodes",
        metavar="EPISODES",
        nargs="?",
        type=_positive,
        const=DEFAULT_EPISODES,
        help=f"only evaluate, greedily (default: {DEFAULT_EPISODES}); usually with -crd",
    )
    what.add_argument(
        "--sampling",
        action="store_true",
        help="evaluate with the exploration of training instead of greedily",
    )
    what.add_argument(
        "--trust",
        metavar="MODULES",
        type=_modules,
        help="with a run of somebody else's: run the code of these modules, separated by commas",
    )
    what.add_argument(
        "--restart_episodes",
        action="store_true",
        help="with -crd: begin open training episodes anew instead of restoring them, where that "
        "fails or takes long",
    )
    _add_changes(parser.add_argument_group("changing the experiment"))
    where = parser.add_argument_group("where and how it runs")
    where.add_argument(
        "-e",
        "--as",
        "--experiment_name",
        dest="experiment_name",
        metavar="NAME",
        help="the experiment's folder (default: the preset's name); a fork needs one",
    )
    where.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        type=Path,
        help="the folder of all experiments (default: ./experiments)",
    )
    where.add_argument(
        "-ntb", "--no_tensorboard", action="store_true", help="write no TensorBoard files"
    )
    _add_videos(where)
    _add_machine(where)
    _add_checkpoints(parser.add_argument_group("checkpoints"))
    where.add_argument(
        "--plain", action="store_true", help="plain lines instead of a live, coloured panel"
    )
    where.add_argument(
        "--print_networks_summary",
        action="store_true",
        help="print levels and networks before starting",
    )
    general = parser.add_argument_group("general")
    general.add_argument("--debug", action="store_true", help="show the traceback of an error")
    general.add_argument(
        "--version",
        action="version",
        version=f"coach_rl {coach_rl.__version__}",
        help="show the version and exit",
    )
    general.add_argument("-h", "--help", action="help", help="show this and exit")
    if command is not None:
        shown = _names(command.kind) | {"debug", "help"}
        shown |= _names(_OF_PRESET[name].kind) if name in _OF_PRESET else set()
        for action in parser._actions:
            action.help = action.help if action.dest in shown else argparse.SUPPRESS
    return parser


def _add_changes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-lvl", "--level", metavar="LEVEL", help="the environment's level (task)")
    group.add_argument("--seed", metavar="SEED", type=_whole, help="random seed (default: 0)")
    group.add_argument(
        "-n", "--num_envs", metavar="N", type=_positive, help="environments in parallel"
    )
    group.add_argument(
        "--steps",
        metavar="N",
        type=_positive,
        help="environment steps to train to, in all; with -crd a new total",
    )
    group.add_argument(
        "--hours",
        metavar="H",
        type=_hours,
        help="stop after H hours of the run's own time, pauses not counted; with -crd a new total",
    )
    group.add_argument(
        "--until_solved",
        metavar="TARGET",
        nargs="?",
        type=_target,
        const="preset",
        help="stop at the evaluation that reaches the preset's target, or TARGET: reward=475, "
        "success_rate=0.9; off: train on",
    )
    group.add_argument(
        "-cp",
        "--custom_parameter",
        metavar="CHANGES",
        action="append",
        help='"learning_rate=1e-3; agent.algorithm.discount=0.98": panel names or dotted paths',
    )
    group.add_argument(
        "--inspect",
        metavar="POINTS",
        help='look into the sampler: "sample:nan,stats@100" (checks: nan, shape, stats)',
    )


def _add_checkpoints(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-s",
        "--checkpoint_seconds",
        metavar="SECONDS",
        type=_seconds,
        help="keep a checkpoint every SECONDS, besides best and last",
    )
    group.add_argument(
        "--checkpoint_steps",
        metavar="N",
        type=_positive,
        help="keep a checkpoint every N environment steps, besides best and last",
    )
    group.add_argument(
        "--keep", metavar="K", type=_whole, help="of these, keep the newest K (default: all)"
    )
    group.add_argument(
        "--keep_every", metavar="N", type=_positive, help="and every Nth of these for ever"
    )
    group.add_argument(
        "--best",
        metavar="METRIC",
        help="metric of the best checkpoint: reward_mean, LEVEL/goal_share, ... (default: "
        "success_rate where success is reported, else reward_mean)",
    )
    group.add_argument(
        "--no_memories",
        action="store_true",
        help="leave replay memories out of checkpoints; a run resumed from them is not exact",
    )
    group.add_argument(
        "--no_checkpoints",
        action="store_true",
        default=argparse.SUPPRESS,
        help="keep none: the run can't be resumed, nor evaluated once it is over",
    )


def _add_videos(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-dg", "--dump_gifs", action="store_true", help="film an episode of each evaluation as GIF"
    )
    group.add_argument(
        "-dm", "--dump_mp4", action="store_true", help="the same as MP4; needs the extra `video`"
    )
    group.add_argument(
        "--video_frames",
        metavar="N",
        type=_positive,
        help="frames of a video at most (default: 200); longer episodes skip more steps",
    )
    group.add_argument(
        "--video_skip",
        metavar="STEPS",
        type=_positive,
        help="steps from one frame to the next (default: 1)",
    )


def _add_machine(group: argparse._ArgumentGroup) -> None:
    device = group.add_mutually_exclusive_group()
    device.add_argument(
        "-c",
        "--use_cpu",
        dest="device",
        action="store_const",
        const="cpu",
        help="use no GPU",
    )
    device.add_argument(
        "--device", metavar="DEVICE", help="auto, cpu, cuda or cuda:N (default: auto)"
    )
    group.add_argument(
        "--threads",
        metavar="N",
        type=_positive,
        help="threads of one tensor operation (default: 1, best for small networks; with -crd the "
        "run's own)",
    )
    group.add_argument(
        "--matmul_precision",
        metavar="WORD",
        help="precision of float32 matrix products: highest (default), high, or medium (bfloat16 "
        "where that is faster, which costs score)",
    )


def _modules(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _all_flags(parser: argparse.ArgumentParser) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]


def _flag_of(parser: argparse.ArgumentParser, name: str) -> str:
    """The first of a setting's flags."""
    flags = [flag for each in parser._actions if each.dest == name for flag in each.option_strings]
    return flags[0] if flags else name


def _whole(text: str) -> int:
    try:
        number = float(text)
        if number.is_integer() and number >= 0:
            return int(text) if text.isdecimal() else int(number)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number of 0 or more, got '{text}'")


def _positive(text: str) -> int:
    try:
        number = _whole(text)
    except argparse.ArgumentTypeError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, got '{text}'")
    return number


def _seconds(text: str) -> float:
    return _above_zero(text, "seconds")


def _hours(text: str) -> float:
    return _above_zero(text, "hours")


def _above_zero(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of {unit} above 0, got '{text}'")
    return number


def _target(text: str) -> str:
    name, _, number = text.partition("=")
    try:
        is_known = text in ("preset", "off") or (
            name in ("reward", "success_rate") and bool(float(number))
        )
    except ValueError:
        is_known = False
    if not is_known:
        raise argparse.ArgumentTypeError(
            f"must be reward=NUMBER, success_rate=NUMBER or off, or nothing, got '{text}'"
        )
    return text
