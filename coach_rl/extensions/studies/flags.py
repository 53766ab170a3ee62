"""The flags of commands about many runs: comparisons, studies, sweeps. Light, like `cli.parser`."""

import argparse
from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import again, group
from coach_rl.cli.parser import Flag

STATES = ("running", "done", "stopped", "pruned", "failed", "damaged")
"""States of a run, as in `studies.runs`."""
SORT_KEYS = ("path", "age", "state", "steps", "best", "last", "size")
"""The keys that a list of runs can be sorted by, as in `studies.runs`."""
MOMENTS = ("final", "last", "afterwards")
"""The evaluations that can score a run, as in `studies.runs`."""


def seeds(text: str) -> tuple[int, ...]:
    """The seeds of `10`, which are 0 to 9, or of the list `3,5,8`."""
    try:
        numbers = (
            tuple(map(values.whole, text.split(",")))
            if "," in text
            else tuple(range(values.positive(text)))
        )
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"must be how many, such as 10 (seeds 0 to 9), or a list, such as 3,5,8; got '{text}'"
        ) from error
    for number in numbers:
        if numbers.count(number) > 1:
            raise argparse.ArgumentTypeError(f"names the seed {number} twice, in '{text}'")
    return numbers


def moment(text: str) -> str | int:
    """The evaluation that scores a run: one of `MOMENTS`, or a number of environment steps."""
    digits = text.replace("_", "").replace(",", "")
    if text not in MOMENTS and not digits.isdecimal():
        raise argparse.ArgumentTypeError(
            f"'{text}' is none of {', '.join(MOMENTS)} and no number of environment steps"
        )
    return text if text in MOMENTS else int(digits)


def port(text: str) -> int:
    """A network port."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is no port: give a number from 0 to 65535")
    return int(text)


FOR_RUNS = (
    *group(
        "changing the experiment",
        Flag(
            "--seeds SEEDS",
            "train a run for each seed: 10 for seeds 0 to 9, or a list such as 3,5,8; again, only "
            "those that are not finished",
            seeds,
            separator=",",
            of="seeds",
        ),
    ),
    *group(
        "where and how it runs",
        Flag(
            "--jobs N",
            "with --seeds: runs at once (default: as many as there are cores and memory for)",
            values.positive,
            of="seeds",
        ),
    ),
)
"""The flags of `coach train --seeds`."""
_ROOT = again("-ep", name="root")
_PLACES = (
    _ROOT,
    Flag(
        "--runs FOLDER",
        "take finished runs with the same parameters from here as well, however deep",
        Path,
        name="earlier",
        is_repeated=True,
    ),
)
_GROUPS = (
    Flag(
        "FOLDER ...",
        "a group of runs each, or one folder whose folders, or whose study's variants, are the "
        "groups; or a study's file, STUDY.py",
        name="folders",
    ),
    *_PLACES,
    Flag(
        "--metric NAME",
        "a metric of evaluations: reward_mean, success_rate, low/goal_share, ... (default: "
        "success_rate where all runs report it, otherwise reward_mean); `coach plot` draws any "
        "number of the logs, such as train/entropy",
    ),
    Flag(
        "--at WHEN",
        "the evaluation that scores a run: final, last (while training), afterwards (made by "
        "`coach evaluate`), or a number of environment steps (default: final)",
        moment,
    ),
    Flag(
        "--statistic NAME",
        "iqm, the mean of the middle half of the seeds, or mean (default: iqm)",
        choices=("iqm", "mean"),
    ),
    Flag("--baseline NAME", "the group that the others are compared with (default: the last one)"),
)
STUDY = (Flag("FILE", "a .py file with `study() -> Study`, or FILE.py:FUNCTION"), *_PLACES)
COMPARE = (*_GROUPS, Flag("--markdown", "print tables as Markdown"))
PLOT = (
    *_GROUPS,
    Flag(
        "--axis AXIS",
        "what curves are drawn against: steps or hours (default: steps)",
        choices=("steps", "hours"),
    ),
    Flag("--to FOLDER", "the folder of the pictures (default: ./plots)", Path),
)
REPORT = (
    Flag(
        "STUDY.py|FOLDER ...",
        "a study's file, or STUDY.py:FUNCTION, which may be unfinished; or a folder for each "
        "group of runs, or one whose folders are the groups",
        name="folders",
    ),
    *_PLACES,
    Flag(
        "--metric NAME",
        "for folders: a metric of evaluations (default: success_rate where all runs report it, "
        "otherwise reward_mean)",
    ),
    Flag(
        "--baseline NAME",
        "for folders: the group that the others are compared with (default: the last one)",
    ),
    Flag(
        "--to FILE",
        "the file to write (default: NAME.html, with the name of the study or of the only "
        "folder, else report.html)",
        Path,
    ),
)
STUDY_RUN = (
    *STUDY,
    Flag("--jobs N", "runs at once (default: as the machine carries)", values.positive),
    Flag("--on PLACE", "where to run: local (default), ray[:HOST:PORT] or slurm[:PARTITION]"),
    again("-ntb"),
)
STUDY_REPORT = (
    *STUDY,
    Flag(
        "--write [PAGE ...]",
        "write them between the study's marks in these pages, or in those that it names",
        Path,
    ),
)
STUDY_EXPORT = (*STUDY, Flag("--to ARCHIVE", "the file (default: the study's name, .zip)", Path))
STUDY_IMPORT = (Flag("ARCHIVE", "what `export` has written", Path), _ROOT)
SWEEP = (
    *group(
        "what to search",
        again("-p"),
        Flag(
            "--search SPACE",
            'what to vary and within what, as "learning_rate=log(1e-4, 3e-3); '
            "discount=uniform(0.9, 0.99); num_envs=int(1, 8); layers=choice((64, 64), (256, "
            "256))\" (default: the preset's own)",
            sets="Sweep.search",
            left_out=r"[A-Za-z_][\w.]*=",
        ),
        Flag(
            "--metric METRIC",
            "metric of the evaluation at a run's end: reward_mean, LEVEL/goal_share, ... (default: "
            "that of the preset's best checkpoint)",
            sets="checkpoints.best_of",
        ),
    ),
    *group(
        "how to search",
        Flag(
            "--trials N",
            "trials in all, those of earlier times included (default: 40, or a whole grid)",
            values.positive,
            sets="Sweep.trials",
        ),
        Flag(
            "--sampler NAME",
            "how to choose what to try: tpe (default), random or grid",
            choices=("tpe", "random", "grid"),
            sets="Sweep.sampler",
        ),
        Flag(
            "--pruner NAME",
            "which trials end early: median (default), halving or none",
            choices=("median", "halving", "none"),
            sets="Sweep.pruner",
        ),
        Flag(
            "--confirm K",
            "train the best K trials and the preset as it is from fresh seeds (default: 3)",
            values.whole,
            sets="Sweep.confirmed",
        ),
        Flag(
            "--confirm_seeds N",
            "number of fresh seeds, 2 or more (default: 5)",
            values.positive,
            sets="Sweep.fresh_seeds",
        ),
    ),
    *group(
        "changing all runs alike",
        again("-lvl"),
        again("--seed", help="seed of trials and sampler"),
        again("-n"),
        again("--steps", help="environment steps of each run"),
        again("-cp"),
    ),
    *group(
        "where and how it runs",
        again(
            "-e",
            form="-e, --experiment_name NAME",
            help="the sweep's folder (default: the preset's name and _sweep)",
            sets="Sweep.name",
        ),
        again("-ep", sets="Sweep.root"),
        Flag("--jobs N", "runs at once (default: 1)", values.positive),
        Flag("--on PLACE", "where to run (default: local)"),
        again("-c"),
        again("--device", help="auto, cpu, cuda or cuda:N"),
        again("--threads", help="threads of one tensor operation (default: the preset's own)"),
    ),
)
LIST_RUNS = (
    Flag("[FOLDER]", "the folder to list (default: ./experiments)", Path),
    Flag(
        "--state STATE",
        f"only runs that are {', '.join(STATES[:-1])} or {STATES[-1]}; may be given again",
        choices=STATES,
        is_repeated=True,
    ),
    Flag("--preset WORD", "only runs whose preset's name contains it"),
    Flag("--task, --level WORD", "only runs whose task's name contains it"),
    Flag("--study NAME", "only runs of a study"),
    Flag("--metric NAME", "the metric of best and last (default: reward_mean)"),
    Flag(
        "--sort KEY",
        f"{', '.join(SORT_KEYS)} (default: path); the largest first, the youngest by age",
        choices=SORT_KEYS,
    ),
    Flag("--reverse", "the other way round"),
)
DELETE_RUNS = (
    Flag("[RUN ...]", "the runs to delete", Path, name="runs"),
    Flag("--yes", "delete without confirmation"),
)
WATCH = (
    Flag(
        "[RUN ...]",
        "a run's folder, or a folder of runs (default: ./experiments): what runs in it, in a table "
        "if that are several, or else its newest run",
        Path,
        name="paths",
    ),
)
DASHBOARD = (
    Flag(
        "[FOLDER ...]",
        "runs, or folders with runs in them (default: ./experiments)",
        Path,
        name="folders",
    ),
    Flag(
        "--port N",
        "the port; 0 takes any that is free (default: the first free one from 6006 on)",
        port,
    ),
    Flag("--host NAME", "the address to listen on (default: this machine only)"),
)
