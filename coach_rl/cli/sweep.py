"""`coach sweep -p PRESET --search SPACE`: a search for better settings of a preset."""

import argparse
import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from coach_rl.cli.flag_values import positive, whole
from coach_rl.cli.shell import program, short
from coach_rl.cli.subcommands import Parser
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError

if TYPE_CHECKING:
    from coach_rl.studies.job import Job

_USAGE = """coach sweep -p PRESET [--search SPACE] [--trials N] [flags]"""
_DESCRIPTION = """Search for better settings of a preset, and train the best few and the preset as
it is again from fresh seeds. The same command again continues a sweep that was stopped, and
works on one that is running."""
_SPACE = """what to vary and within what, as "learning_rate=log(1e-4, 3e-3); discount=uniform(0.9,
0.99); num_envs=int(1, 8); layers=choice((64, 64), (256, 256))" (default: the preset's own)"""


def run(words: Sequence[str]) -> int:
    """Read the words after `coach sweep` and obey them; returns the exit code."""
    given = _parser().read(words)
    given.preset = given.preset or given.subject
    if given.preset is None:
        raise ConfigurationError(f"`coach sweep` needs a preset: {_USAGE}")
    find_preset(given.preset)  # a misspelt name is reported at once
    return _sweep(given)


def _parser() -> Parser:
    parser = Parser(prog="coach sweep", usage=_USAGE, description=_DESCRIPTION)
    what = parser.add_argument_group("what to search")
    what.add_argument("subject", metavar="PRESET", nargs="?", help="the same as -p PRESET")
    what.add_argument(
        "-p",
        "--preset",
        metavar="PRESET",
        help="a shipped preset's name, FILE.py, or either with :FUNCTION",
    )
    what.add_argument("--search", metavar="SPACE", default="", help=_SPACE)
    what.add_argument(
        "--metric",
        metavar="METRIC",
        help="metric of the evaluation at a run's end: reward_mean, LEVEL/goal_share, ... "
        "(default: that of the preset's best checkpoint)",
    )
    how = parser.add_argument_group("how to search")
    how.add_argument(
        "--trials",
        metavar="N",
        type=positive,
        help="trials in all, those of earlier times included (default: 40, or a whole grid)",
    )
    how.add_argument(
        "--sampler",
        metavar="NAME",
        choices=["tpe", "random", "grid"],
        default="tpe",
        help="how to choose what to try: tpe (default), random or grid",
    )
    how.add_argument(
        "--pruner",
        metavar="NAME",
        choices=["median", "halving", "none"],
        default="median",
        help="which trials end early: median (default), halving or none",
    )
    how.add_argument(
        "--confirm",
        metavar="K",
        type=whole,
        default=3,
        help="train the best K trials and the preset as it is from fresh seeds (default: 3)",
    )
    how.add_argument(
        "--confirm_seeds",
        metavar="N",
        type=positive,
        default=5,
        help="number of fresh seeds, 2 or more (default: 5)",
    )
    changes = parser.add_argument_group("changing all runs alike")
    changes.add_argument("-lvl", "--level", metavar="LEVEL", help="the environment's level (task)")
    changes.add_argument(
        "--seed", metavar="SEED", type=whole, default=0, help="seed of trials and sampler"
    )
    changes.add_argument(
        "-n", "--num_envs", metavar="N", type=positive, help="environments in parallel"
    )
    changes.add_argument(
        "--steps", metavar="N", type=positive, help="environment steps of each run"
    )
    changes.add_argument(
        "-cp",
        "--custom_parameter",
        metavar="CHANGES",
        action="append",
        default=[],
        help='"discount=0.98; agent.memory.capacity=100000": panel names or dotted paths',
    )
    where = parser.add_argument_group("where and how it runs")
    where.add_argument(
        "-e",
        "--experiment_name",
        metavar="NAME",
        help="the sweep's folder (default: the preset's name and _sweep)",
    )
    where.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        type=Path,
        help="the folder of all experiments (default: ./experiments)",
    )
    where.add_argument(
        "--jobs", metavar="N", type=positive, default=1, help="runs at once (default: 1)"
    )
    where.add_argument(
        "--on", metavar="PLACE", default="local", help="where to run (default: local)"
    )
    where.add_argument(
        "-c",
        "--use_cpu",
        dest="device",
        action="store_const",
        const="cpu",
        default="auto",
        help="use no GPU",
    )
    where.add_argument(
        "--device", metavar="DEVICE", default="auto", help="auto, cpu, cuda or cuda:N"
    )
    where.add_argument(
        "--threads",
        metavar="N",
        type=positive,
        help="threads of one tensor operation (default: the preset's own)",
    )
    where.add_argument("--tensorboard", action="store_true", help="write TensorBoard files")
    return parser


def _sweep(given: argparse.Namespace) -> int:
    # Not at the top: this imports torch, which takes seconds; the parser answers at once.
    from coach_rl.cli.flag_overrides import overrides_of
    from coach_rl.cli.settings import Changes, Keeping, Length
    from coach_rl.configuration.preset_file import load_preset
    from coach_rl.core.runtime import Runtime
    from coach_rl.sessions.runner import DEFAULT_ROOT
    from coach_rl.studies.job import Needs
    from coach_rl.studies.places import executor
    from coach_rl.studies.sweeps.report import conclusion, report, write_report
    from coach_rl.studies.sweeps.sweep import Sweep, run_sweep

    preset = load_preset(find_preset(given.preset))
    changes = Changes(
        level=given.level,
        num_envs=given.num_envs,
        custom_parameter=";".join(given.custom_parameter),
    )
    length, keeping = Length(steps=given.steps), Keeping(best=given.metric)
    overrides = overrides_of(changes, preset, length, keeping)
    threads = given.threads or preset.configure(overrides).parameters.threads
    sweep = Sweep(
        preset=given.preset,
        search=given.search,
        overrides=overrides,
        task=Runtime(seed=given.seed, device=given.device, threads=threads),
        name=given.experiment_name or f"{preset.reference.name}_sweep",
        root=given.experiment_path or DEFAULT_ROOT,
        trials=given.trials,
        sampler=given.sampler,
        pruner=given.pruner,
        confirmed=given.confirm,
        fresh_seeds=given.confirm_seeds,
        needs=Needs(cores=threads),
        tensorboard=given.tensorboard,
    )
    print(f"sweep:      {sweep.name}, folder {short(sweep.folder)}")
    any_run = sweep.job({}, {})
    with closing(
        executor(given.on, [any_run] * given.jobs, at_once=given.jobs, on_warning=_warn)
    ) as pool:
        result = run_sweep(sweep, pool, announce=_announce)
    page = write_report(result)
    print(f"\n{report(result)}\n")
    print(f"written to  {short(page)}")
    print(conclusion(result))
    if result.best:
        print(f"train with it: {_command(given, result.recommended)}")
    return 0


def _announce(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def _warn(job: "Job", text: str) -> None:
    seed = f"seed {job.task.seed}"
    names = [f"{kind} {name}" for kind, name in job.labels.items() if kind == "trial"]
    _announce(f"warning: {', '.join(names or [job.labels['variant'], seed])}: {text}")


def _command(given: argparse.Namespace, changes: str) -> str:
    """The command line that trains with the best setting, as it can be typed."""
    from coach_rl.studies.job_run import in_quotes

    return f"{program('coach')} -p {shlex.quote(given.preset)} -cp {in_quotes(changes)}"
