"""The flags of all commands about one run, in one parser that knows each for every command.

Light on purpose, like `arguments`: nothing here needs torch.
"""

import argparse
from pathlib import Path

import coach_rl
from coach_rl.cli.flag_values import (
    hours,
    modules,
    positive,
    seconds,
    seeds,
    target,
    tracker,
    whole,
)
from coach_rl.cli.settings import DEFAULT_EPISODES, DEFAULT_HISTOGRAM_STEPS
from coach_rl.cli.subcommands import Parser


def flag_parser(*, prog: str, usage: str, description: str) -> Parser:
    """The parser of every flag; a flag that isn't given leaves no value.

    Args:
        prog: The command, for messages.
        usage: Its usage.
        description: Its purpose.
    """
    parser = Parser(
        prog=prog,
        usage=usage,
        description=description,
        add_help=False,
        argument_default=argparse.SUPPRESS,
    )
    _add_what(parser.add_argument_group("what to run"))
    _add_changes(parser.add_argument_group("changing the experiment"))
    _add_where(parser.add_argument_group("where and how it runs"))
    _add_checkpoints(parser.add_argument_group("checkpoints"))
    _add_general(parser.add_argument_group("general"))
    return parser


def all_flags(parser: argparse.ArgumentParser) -> list[str]:
    """Every flag of a parser, in every spelling."""
    return [flag for action in parser._actions for flag in action.option_strings]


def flag_of(parser: argparse.ArgumentParser, name: str) -> str:
    """The first of a setting's flags."""
    flags = [flag for each in parser._actions if each.dest == name for flag in each.option_strings]
    return flags[0] if flags else name


def show_only(parser: argparse.ArgumentParser, names: set[str]) -> None:
    """Leave all flags out of the help but those of these settings."""
    for action in parser._actions:
        action.help = action.help if action.dest in names else argparse.SUPPRESS


def _add_what(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-p",
        "--preset",
        metavar="PRESET",
        help="a shipped preset's name, FILE.py, or either with :FUNCTION",
    )
    group.add_argument("-l", "--list", action="store_true", help="list the shipped presets")
    group.add_argument(
        "-crd",
        "--checkpoint_restore",
        metavar="RUN",
        dest="run",
        type=Path,
        help="resume a run: its folder (last checkpoint), one of its checkpoints, RUN@STEP, or a "
        "folder of runs (the newest)",
    )
    group.add_argument(
        "--last_good",
        action="store_true",
        help="take the run's newest checkpoint that can be read",
    )
    group.add_argument(
        "--drop_later",
        action="store_true",
        help="delete the checkpoints and logs after the one resumed from",
    )
    group.add_argument(
        "--evaluate",
        "--episodes",
        dest="episodes",
        metavar="EPISODES",
        nargs="?",
        type=positive,
        const=DEFAULT_EPISODES,
        help=f"only evaluate, greedily (default: {DEFAULT_EPISODES}); usually with -crd",
    )
    group.add_argument(
        "--sampling",
        action="store_true",
        help="evaluate with the exploration of training instead of greedily",
    )
    group.add_argument(
        "--trust",
        metavar="MODULES",
        type=modules,
        help="with a run of somebody else's: run the code of these modules, separated by commas",
    )
    group.add_argument(
        "--restart_episodes",
        action="store_true",
        help="with -crd: begin open training episodes anew instead of restoring them, where that "
        "fails or takes long",
    )


def _add_changes(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-lvl", "--level", metavar="LEVEL", help="the environment's level (task)")
    group.add_argument("--seed", metavar="SEED", type=whole, help="random seed (default: 0)")
    group.add_argument(
        "--seeds",
        metavar="SEEDS",
        type=seeds,
        help="train a run for each seed: 10 for seeds 0 to 9, or a list such as 3,5,8; again, only "
        "those that are not finished",
    )
    group.add_argument(
        "-n", "--num_envs", metavar="N", type=positive, help="environments in parallel"
    )
    group.add_argument(
        "--workers",
        metavar="N",
        type=positive,
        help="let N worker processes act and step the environments, a share of them each; not with "
        "--seeds",
    )
    group.add_argument(
        "--steps",
        metavar="N",
        type=positive,
        help="environment steps to train to, in all; with -crd a new total",
    )
    group.add_argument(
        "--hours",
        metavar="H",
        type=hours,
        help="stop after H hours of the run's own time, pauses not counted; with -crd a new total",
    )
    group.add_argument(
        "--until_solved",
        metavar="TARGET",
        nargs="?",
        type=target,
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
        help='look at points of the flow of data: "batch:nan,stats@100; network:range=-5..5:warn" '
        "(points: environment, filter, memory, sampler, batch, network, update; checks: nan, "
        "shape, range, stats, staleness; what is wrong: warn, dump or stop, the default); off: at "
        "none",
    )


def _add_where(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-e",
        "--as",
        "--experiment_name",
        dest="experiment_name",
        metavar="NAME",
        help="the experiment's folder (default: the preset's name); a fork needs one",
    )
    group.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        type=Path,
        help="the folder of all experiments (default: ./experiments)",
    )
    group.add_argument(
        "-ntb", "--no_tensorboard", action="store_true", help="write no TensorBoard files"
    )
    group.add_argument(
        "--tracker",
        metavar="SERVICE",
        type=tracker,
        help="also log to wandb, trackio or mlflow, or SERVICE:PROJECT (default: coach_rl), "
        "instead of the preset's own sinks; off: to none; a resumed run continues there",
    )
    group.add_argument(
        "--histograms",
        metavar="STEPS",
        nargs="?",
        type=positive,
        const=DEFAULT_HISTOGRAM_STEPS,
        help="for TensorBoard: parameters, gradients, actions and observations every STEPS "
        f"environment steps (default: {DEFAULT_HISTOGRAM_STEPS})",
    )
    _add_videos(group)
    _add_machine(group)
    group.add_argument(
        "--evaluate_aside",
        action="store_true",
        help="evaluate in a process of its own; training doesn't wait for the results",
    )
    group.add_argument(
        "--profile",
        action="store_true",
        help="show at the end where time has gone; profile.json and trace.json in the run's folder",
    )
    group.add_argument(
        "--print_networks_summary",
        action="store_true",
        help="print levels and networks before starting",
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
        type=positive,
        help="frames of a video at most (default: 200); longer episodes skip more steps",
    )
    group.add_argument(
        "--video_skip",
        metavar="STEPS",
        type=positive,
        help="steps from one frame to the next (default: 1)",
    )
    group.add_argument(
        "--video_of",
        metavar="WHAT",
        choices=("evaluation", "training"),
        help="film evaluations (default) or training episodes",
    )
    group.add_argument(
        "--video_episodes",
        metavar="WHICH",
        choices=("first", "best", "worst", "longest"),
        help="film the first episode (default), the best, worst or longest",
    )
    group.add_argument(
        "--video_every",
        metavar="N",
        type=positive,
        help="film every Nth evaluation, or one of N training episodes (default: 1)",
    )
    group.add_argument(
        "--video_row",
        metavar="ROW",
        type=whole,
        help="film the environment of this number (default: 0; best, worst and longest: of all)",
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
        type=positive,
        help="threads of one tensor operation (default: the preset's own; with -crd the run's)",
    )
    group.add_argument(
        "--jobs",
        metavar="N",
        type=positive,
        help="with --seeds: runs at once (default: as many as there are cores and memory for)",
    )
    group.add_argument(
        "--on",
        metavar="PLACE",
        help="where the runs of --seeds, or the --workers of one run, are: local (default), "
        "ray[:ADDRESS]; runs also on slurm[:PARTITION]",
    )
    group.add_argument(
        "--matmul_precision",
        metavar="WORD",
        help="precision of float32 matrix products: highest (default), high, or medium (bfloat16 "
        "where that is faster, which costs score)",
    )


def _add_checkpoints(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-s",
        "--checkpoint_seconds",
        metavar="SECONDS",
        type=seconds,
        help="keep a checkpoint every SECONDS, besides best and last",
    )
    group.add_argument(
        "--checkpoint_steps",
        metavar="N",
        type=positive,
        help="keep a checkpoint every N environment steps, besides best and last",
    )
    group.add_argument(
        "--keep", metavar="K", type=whole, help="of these, keep the newest K (default: all)"
    )
    group.add_argument(
        "--keep_every", metavar="N", type=positive, help="and every Nth of these for ever"
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
        help="keep none: the run can't be resumed, nor evaluated once it is over",
    )


def _add_general(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--plain", action="store_true", help="plain lines instead of a live, coloured panel"
    )
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    group.add_argument(
        "--version",
        action="version",
        version=f"coach_rl {coach_rl.__version__}",
        help="show the version and exit",
    )
    group.add_argument("-h", "--help", action="help", help="show this and exit")
