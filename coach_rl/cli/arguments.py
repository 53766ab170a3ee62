"""What the command line understands.

Light on purpose: nothing here or in what it imports needs torch, so `--help` and a mistyped flag
answer at once.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

from coach_rl.core.errors import ConfigurationError, UnknownNameError

DEFAULT_EPISODES = 20
"""Episodes of `--evaluate` without a number."""


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """One command line, read; None and False stand for what was not given."""

    describe: bool = False
    list: bool = False
    preset: str | None = None
    level: str | None = None
    experiment_name: str | None = None
    experiment_path: Path | None = None
    seed: int | None = None
    num_envs: int | None = None
    custom_parameter: str | None = None
    inspect: str | None = None
    checkpoint_restore: Path | None = None
    evaluate: int | None = None
    steps: int | None = None
    checkpoint_seconds: float | None = None
    no_tensorboard: bool = False
    dump_gifs: bool = False
    dump_mp4: bool = False
    video_frames: int | None = None
    video_skip: int | None = None
    use_cpu: bool = False
    device: str | None = None
    threads: int | None = None
    matmul_precision: Literal["highest", "high", "medium"] | None = None
    plain: bool = False
    print_networks_summary: bool = False
    debug: bool = False


_USAGE = """coach -p PRESET [flags]
       coach -crd RUN [flags]
       coach -l
       coach describe PRESET [flags]"""
_FLAGS = {
    "preset": "-p",
    "level": "-lvl",
    "experiment_name": "-e",
    "experiment_path": "-ep",
    "seed": "--seed",
    "num_envs": "-n",
    "custom_parameter": "-cp",
    "inspect": "--inspect",
    "steps": "--steps",
    "checkpoint_seconds": "-s",
    "no_tensorboard": "-ntb",
    "dump_gifs": "-dg",
    "dump_mp4": "-dm",
    "video_frames": "--video_frames",
    "video_skip": "--video_skip",
    "evaluate": "--evaluate",
    "matmul_precision": "--matmul_precision",
    "plain": "--plain",
}
_FIXED_BY_MANIFEST = (
    "preset",
    "level",
    "experiment_name",
    "experiment_path",
    "num_envs",
    "custom_parameter",
    "inspect",
    "matmul_precision",
)
_ONLY_FOR_TRAINING = (
    "experiment_name",
    "experiment_path",
    "steps",
    "checkpoint_seconds",
    "no_tensorboard",
)
_FILMING = ("dump_gifs", "dump_mp4")
_OF_VIDEOS = ("video_frames", "video_skip")


def parse_arguments(arguments: Sequence[str]) -> Arguments:
    """Read a command line.

    Args:
        arguments: Without the program's name.

    Raises:
        ConfigurationError: An unknown flag, a value that doesn't fit, or flags that contradict
            each other.
        SystemExit: `--help` was asked for and has been printed.
    """
    if arguments[:1] == ["describe"]:
        words = [word for word in arguments[1:] if word not in ("-p", "--preset")]
        return _parse(_describe_parser(), words, describe=True)
    read = _parse(_parser(), arguments)
    _check_combination(read)
    return read


def _parse(
    parser: argparse.ArgumentParser, arguments: Sequence[str], *, describe: bool = False
) -> Arguments:
    namespace, unknown = parser.parse_known_args(arguments)
    for word in unknown:
        if not word.startswith("-"):
            raise ConfigurationError(
                f"unexpected argument '{word}'; a preset is given with -p {word}, `coach "
                "--help` shows all flags"
            )
        flag = word.partition("=")[0]
        raise UnknownNameError("flag", flag, _all_flags(parser), "`coach --help` shows all")
    given = {**vars(namespace), "describe": describe}
    if given["custom_parameter"] is not None:
        given["custom_parameter"] = ";".join(given["custom_parameter"])
    return Arguments(**given)


def _check_combination(read: Arguments) -> None:
    if not (read.list or read.preset is not None or read.checkpoint_restore is not None):
        raise ConfigurationError(
            "nothing to do; give -p PRESET, -crd RUN or -l (`coach --help` shows all flags)"
        )
    if read.checkpoint_restore is not None:
        _refuse(read, _FIXED_BY_MANIFEST, "-crd rebuilds the experiment from its manifest")
        if read.evaluate is None:
            _refuse(read, ("seed",), "-crd keeps the run's own seed")
    if read.evaluate is not None:
        _refuse(read, _ONLY_FOR_TRAINING, "--evaluate trains nothing")
        if read.checkpoint_restore is None:
            _refuse(read, _FILMING, "--evaluate without -crd has no run folder for videos")
    if not (read.dump_gifs or read.dump_mp4):
        _refuse(read, _OF_VIDEOS, "no video is asked for by -dg or -dm")
    if read.list and (read.preset is not None or read.checkpoint_restore is not None):
        raise ConfigurationError("-l lists the presets and does nothing else; leave out the others")


def _refuse(read: Arguments, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(read, name) not in (None, False):
            raise ConfigurationError(f"{why}; leave out {_FLAGS[name]}")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="coach",
        usage=_USAGE,
        description="Train, resume and evaluate experiments described by presets.",
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_help=False,
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
        type=Path,
        help="resume a run: its folder (last checkpoint) or one of its checkpoints",
    )
    what.add_argument(
        "--evaluate",
        metavar="EPISODES",
        nargs="?",
        type=_positive,
        const=DEFAULT_EPISODES,
        help=f"only evaluate, greedily (default: {DEFAULT_EPISODES}); usually with -crd",
    )
    _add_changes(parser.add_argument_group("changing the experiment"))
    where = parser.add_argument_group("where and how it runs")
    where.add_argument(
        "-e",
        "--experiment_name",
        metavar="NAME",
        help="the experiment's folder (default: the preset's name)",
    )
    where.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        type=Path,
        help="the folder of all experiments (default: ./experiments)",
    )
    where.add_argument(
        "-s",
        "--checkpoint_seconds",
        metavar="SECONDS",
        type=_seconds,
        help="keep a checkpoint every SECONDS, besides best and last",
    )
    where.add_argument(
        "-ntb", "--no_tensorboard", action="store_true", help="write no TensorBoard files"
    )
    _add_videos(where)
    _add_machine(where)
    where.add_argument(
        "--plain", action="store_true", help="plain lines instead of a live, coloured panel"
    )
    where.add_argument(
        "--print_networks_summary",
        action="store_true",
        help="print levels and networks before starting",
    )
    _add_general(parser.add_argument_group("general"))
    return parser


def _describe_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="coach describe",
        usage="coach describe PRESET [flags]",
        description="Print a preset's control panel, resolved parameters, levels and networks.",
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("preset", metavar="PRESET", help="as after -p, which may be written too")
    changes = parser.add_argument_group("changing the experiment")
    _add_changes(changes)
    machine = parser.add_argument_group("where it is built")
    _add_machine(machine)
    _add_general(parser.add_argument_group("general"))
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
    device.add_argument("-c", "--use_cpu", action="store_true", help="use no GPU")
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


def _add_general(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    group.add_argument("-h", "--help", action="help", help="show this and exit")


class _Parser(argparse.ArgumentParser):
    """Raises our own error instead of printing the usage and exiting."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(f"{message} (`{self.prog} --help` shows all flags)")


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


def _all_flags(parser: argparse.ArgumentParser) -> list[str]:
    return [flag for action in parser._actions for flag in action.option_strings]


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
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got '{text}'")
    return number
