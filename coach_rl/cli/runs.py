"""`coach runs`: a list of runs; `coach runs rm`: deleting some."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from coach_rl.cli.subcommands import Parser
from coach_rl.cli.tables import table_console
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.printable_text import one_line, printable
from coach_rl.core.sizes import readable
from coach_rl.runs.creation import remove_run
from coach_rl.runs.folder import MANIFEST, RunFolder
from coach_rl.runs.lock import RunInUseError, holder_of
from coach_rl.studies.comparison import shown
from coach_rl.studies.runs import (
    REWARD,
    STATES,
    ListedRun,
    list_runs,
    listed_run,
    selected,
    sort_keys,
)
from coach_rl.telemetry.tables import Column, rich_table, table

_AGES = (("d", 86400), ("h", 3600), ("min", 60))


def run(words: Sequence[str]) -> int:
    """List runs, or delete some, and return the exit code."""
    given = _parser().read(words)
    if given.words[:1] == ["rm"]:
        return _remove([Path(word) for word in given.words[1:]], yes=given.yes)
    if given.yes or len(given.words) > 1:
        what = "--yes" if given.yes else f"'{given.words[1]}'"
        raise ConfigurationError(
            f"unexpected {what}; give one folder of runs, or `coach runs rm RUN ...`"
        )
    return _list(Path(*(given.words or ["experiments"])), given)


def _list(named: Path, given: argparse.Namespace) -> int:
    folder = named.expanduser()
    runs = list_runs(folder)
    if not runs:
        what = "holds no runs" if folder.exists() else "does not exist"
        raise ConfigurationError(
            f"{named} {what}; name the folder of your experiments: `coach runs FOLDER`"
        )
    if given.metric not in (known := _metrics(runs)) and known:
        raise UnknownNameError("metric", given.metric, known)
    chosen = selected(
        runs, states=given.state or (), preset=given.preset, level=given.level, study=given.study
    )
    chosen.sort(key=sort_keys(given.metric)[given.sort], reverse=given.reverse)
    console = table_console()
    found = table(_columns(folder, given.metric), chosen)
    look = {"box": None, "pad_edge": False, "header_style": "bold"}
    console.print(rich_table(found, folded=1, **look))
    total = readable(sum(each.size for each in chosen))
    console.print(f"{len(chosen)} of {len(runs)} runs, {total}; best and last: {given.metric}")
    for each in chosen:
        if each.damage:
            console.print(f"damaged: {one_line(each.damage)}")
    return 0


def _columns(folder: Path, metric: str) -> tuple[Column, ...]:
    """The columns of a list of the runs in a folder."""

    def state(each: ListedRun) -> str:
        holder = None if each.scores is None else each.scores.holder
        return each.state if holder is None else f"{each.state} on {holder.host}"

    def of_scores(name: str) -> Callable[[ListedRun], object]:
        return lambda each: None if each.scores is None else getattr(each.scores, name)

    def in_unit(value: float) -> str:
        return shown(value, metric)

    return (
        Column(
            "run",
            lambda each: each.path if each.path == folder else each.path.relative_to(folder),
            is_text=True,
        ),
        Column("level", of_scores("level"), is_text=True, missing="-"),
        Column("seed", of_scores("seed"), is_text=True, missing="-"),
        Column("state", state, is_text=True),
        Column("steps", of_scores("environment_steps"), "{:,}".format, missing="-"),
        Column("best", lambda each: each.best(metric), in_unit, missing="-"),
        Column("last", lambda each: each.last(metric), in_unit, missing="-"),
        Column("size", lambda each: each.size, readable),
        Column("age", lambda each: each.age_seconds, _age),
    )


def _metrics(runs: Sequence[ListedRun]) -> set[str]:
    curves = [run.scores.curve.metrics for run in runs if run.scores is not None]
    return {name for metrics in curves for name in metrics}


def _remove(paths: Sequence[Path], *, yes: bool) -> int:
    if not paths:
        raise ConfigurationError("name the runs to delete: `coach runs rm RUN ...`")
    runs = {path.expanduser().absolute().resolve(): path for path in paths}
    for path, named in runs.items():
        if not (path / MANIFEST).exists():
            raise ConfigurationError(
                f"{named} is no run's folder (with a manifest.json); nothing is deleted; `coach "
                "runs FOLDER` lists runs"
            )
        if (holder := holder_of(path)) is not None:
            raise RunInUseError(f"the run {named} is in use by {holder}; stop it first")
    sizes = {path: listed_run(path).size for path in runs}
    total, count = readable(sum(sizes.values())), f"{len(runs)} run{'s' * (len(runs) > 1)}"
    if not yes:
        for path, named in runs.items():
            print(f"{printable(str(named))}  {readable(sizes[path])}")
        _ask(f"Delete {count}, {total}? [y/N] ")
    for path in runs:
        remove_run(RunFolder(path))
    print(f"deleted {count}, {total}")
    return 0


def _ask(question: str) -> None:
    """Raise `ConfigurationError` unless the user agrees."""
    if not sys.stdin.isatty():
        raise ConfigurationError("nobody can be asked here, so nothing is deleted; give --yes")
    if input(question).strip().lower() not in ("y", "yes"):
        raise ConfigurationError("nothing is deleted")


def _age(seconds: float) -> str:
    for unit, length in _AGES:
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _parser() -> Parser:
    parser = Parser(
        prog="coach runs",
        usage="coach runs [FOLDER] [flags]\n       coach runs rm RUN ... [--yes]",
        description="List the runs in a folder, however deep: state, steps, best and last "
        "evaluation, size with checkpoints, age. `coach runs rm` deletes runs with all they hold; "
        "it refuses those that a process works on.",
    )
    parser.add_argument(
        "words",
        metavar="FOLDER",
        nargs="*",
        help="the folder to list (default: ./experiments), or rm and the runs to delete",
    )
    parser.add_argument(
        "--state",
        metavar="STATE",
        action="append",
        choices=STATES,
        help=f"only runs that are {', '.join(STATES[:-1])} or {STATES[-1]}; may be given again",
    )
    parser.add_argument(
        "--preset", metavar="WORD", default="", help="only runs whose preset's name contains it"
    )
    parser.add_argument(
        "--level", metavar="WORD", default="", help="only runs whose level's name contains it"
    )
    parser.add_argument("--study", metavar="NAME", default="", help="only runs of a study")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        default=REWARD,
        help=f"the metric of best and last (default: {REWARD})",
    )
    parser.add_argument(
        "--sort",
        metavar="KEY",
        choices=list(sort_keys()),
        default="path",
        help=f"{', '.join(sort_keys())} (default: path); the largest first, the youngest by age",
    )
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument("--yes", action="store_true", help="with rm: don't ask")
    return parser
