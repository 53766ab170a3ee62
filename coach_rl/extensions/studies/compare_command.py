"""The commands that compare groups of runs, or the variants of a study: compare, plot, report."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import short, table_console
from coach_rl.configuration.strict_json import write_text
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.shown_text import one_line
from coach_rl.extensions.studies.comparison import (
    compare,
    comparison_table,
    default_baseline,
    notes_on,
    overall_improvement,
    possible_comparisons,
    score_table,
)
from coach_rl.extensions.studies.logged import with_logged
from coach_rl.extensions.studies.plots import Plots, require_matplotlib
from coach_rl.extensions.studies.report import folders_page, report_page
from coach_rl.extensions.studies.runs import (
    FINAL,
    IQM,
    MOMENTS,
    RunFrame,
    Scored,
    default_metric,
    find_runs,
    group_scores,
    require_metric,
)
from coach_rl.extensions.studies.study import load_study
from coach_rl.extensions.studies.study_runs import study_frame, study_runs
from coach_rl.sessions.session import DEFAULT_ROOT
from coach_rl.telemetry.tables import markdown, rich_table


def compare_groups(given: Given) -> int:
    """Print by how much groups differ; the exit code."""
    groups = _chosen_groups(given)
    notes = groups.notes
    metric = groups.metric
    scored, left_out = group_scores(groups.frame, metric=metric, at=groups.at)
    baseline = groups.baseline or default_baseline(scored, groups.frame.groups)
    baseline = baseline or scored[-1].group
    found = compare(scored, baseline, metric=metric, statistic=given.statistic or IQM)
    notes += [*left_out, *notes_on(scored)]
    title = f"{metric} {groups.moment}"
    tables = [score_table(scored, metric=metric, title=title), comparison_table(found)]
    console = table_console()
    hint = "" if groups.baseline else _hint(baseline, groups.frame.groups)
    console.print(f"Baseline: {baseline}{hint}", end="\n\n" if given.markdown else "\n")
    if given.markdown:
        console.print(*map(markdown, tables), sep="\n\n")
    else:
        console.print(*map(rich_table, tables), sep="")
    console.print()
    for each in found:
        console.print(f"On {each.level}: {each.verdict()}.")
    for group in dict.fromkeys(each.group for each in found):
        over = overall_improvement(scored, group, baseline)
        if over is not None and over[0].low is not None:
            chance, tasks = over
            console.print(
                f"Over {tasks} tasks, a run of {group} scores higher than one of {baseline} with "
                f"a probability of {chance.value:.2f} (95 % interval {chance.low:.2f} to "
                f"{chance.high:.2f})."
            )
    for note in notes:
        console.print(f"Note: {one_line(note)}.")
    return 0


@dataclass(frozen=True)
class _Groups:
    """The chosen groups, and how their runs are scored."""

    frame: RunFrame
    notes: list[str]
    metric: str
    baseline: str | None
    at: str | int | None
    """The evaluation; None: the one in the frame."""
    moment: str
    """The evaluation, for a title."""


def _chosen_groups(given: Given) -> _Groups:
    """The groups in the folders, or the variants of a study with its metric.

    Raises:
        ConfigurationError: There are no runs, or a study stands beside something else.
    """
    file = _study_file(given)
    if file is None:
        at = given.at or FINAL
        return _Groups(*_runs_in_folders(given), given.baseline, at, _description(at))
    study = load_study(file)
    root = given.root or DEFAULT_ROOT
    runs = study_runs(study, root=root, earlier=given.earlier or ())
    frame = study_frame(study, runs)
    if not frame.rows:
        raise ConfigurationError(
            f"the study '{study.name}' has no runs in {root / study.name}; `coach study run "
            f"{file}` makes them, and -ep names another folder of all experiments"
        )
    missing = sum(run.scores is None for run in runs)
    notes = [f"{missing} of {len(runs)} runs have not begun"] if missing else []
    moment = _description(given.at or FINAL)
    if given.at is None and study.episodes is not None:
        moment = f"of the evaluation over {study.episodes:,} episodes after training"
    metric = given.metric or study.metric
    baseline = given.baseline
    if baseline is None and study.baseline in frame.groups:
        baseline = study.baseline
    return _Groups(frame, notes, metric, baseline, given.at, moment)


def _study_file(given: Given) -> str | None:
    """The study's file; None where folders are given."""
    files = [word for word in given.folders if re.search(r"\.py(:\w*)?$", word)]
    if files and len(given.folders) > 1:
        raise ConfigurationError(
            f"the study {files[0]} names all that is compared; give it alone, or folders"
        )
    return files[0] if files else None


def _runs_in_folders(given: Given) -> tuple[RunFrame, list[str], str]:
    """The runs in the folders, notes on them, and the metric that scores them."""
    if given.earlier:
        raise ConfigurationError("--runs adds runs to a study; name its file, or leave it out")
    frame, notes = find_runs([Path(word) for word in given.folders])
    return frame, notes, given.metric or default_metric(frame)


def _description(at: str | int) -> str:
    """An evaluation, for a title."""
    return f"of {MOMENTS[at]}" if isinstance(at, str) else f"after {at:,} environment steps"


def plot(given: Given) -> int:
    """Write pictures of groups; the exit code."""
    require_matplotlib()
    groups = _chosen_groups(given)
    frame = groups.frame
    notes = groups.notes
    metric = groups.metric
    baseline = groups.baseline
    is_logged = bool(given.metric) and metric not in frame.metrics
    if is_logged:
        frame = with_logged(frame, metric)
        if given.at is not None:
            raise ConfigurationError(
                f"--at is about evaluations, and '{metric}' is a number of training; leave it out"
            )
    require_metric(frame, metric)
    folder = given.to or Path("plots")
    statistic = given.statistic or IQM
    if given.baseline is not None and given.baseline not in frame.groups:
        raise UnknownNameError("group", given.baseline, frame.groups, where="as baseline")
    scored, more = ([], []) if is_logged else _scores(frame, metric, groups.at)
    comparisons = possible_comparisons(
        scored, baseline, metric=metric, statistic=statistic, groups=frame.groups
    )
    plots = Plots(frame=frame, metric=metric, axis=given.axis or "steps", statistic=statistic)
    notes += more + (notes_on(scored) if comparisons else [])
    files = plots.write(folder, scored=scored, comparisons=comparisons, notes=notes)
    for note in notes:
        print(f"Note: {one_line(note)}.")
    print(f"Written to {folder}: {', '.join(file.name for file in files)}")
    return 0


def _scores(frame: RunFrame, metric: str, at: str | int | None) -> tuple[list[Scored], list[str]]:
    """The scores; none while no run is finished, for curves can be drawn before."""
    try:
        return group_scores(frame, metric=metric, at=at)
    except ConfigurationError as error:
        return [], [f"only curves are drawn: {error}"]


def report(given: Given) -> int:
    """Write the report of a study or of groups; the exit code."""
    file = _study_file(given)
    require_matplotlib()
    return _folders_report(given) if file is None else _study_report(given, file)


def _study_report(given: Given, file: str) -> int:
    for flag in ("metric", "baseline"):
        if getattr(given, flag) is not None:
            raise ConfigurationError(f"--{flag} is for folders; a study's file states its own")
    study = load_study(file)
    runs = study_runs(study, root=given.root or DEFAULT_ROOT, earlier=given.earlier or ())
    page = report_page(study, runs, file=file, when=datetime.now().astimezone())
    if study.baseline is not None:
        print(f"baseline:   {study.baseline}")
    missing = sum(each.score(study) is None for each in runs)
    if missing:
        print(f"missing:    {missing} of {len(runs)} runs (`coach study run {file}`)")
    _write(page, given.to, study.name)
    return 0


def _folders_report(given: Given) -> int:
    frame, notes, metric = _runs_in_folders(given)
    scored, left_out = group_scores(frame, metric=metric)
    baseline, text = _baseline_of(scored, frame.groups, given.baseline)
    page = folders_page(
        frame,
        scored,
        metric=metric,
        baseline=baseline,
        notes=[*notes, *left_out],
        folders=given.folders,
        when=datetime.now().astimezone(),
    )
    print(text)
    for note in (*notes, *left_out):
        print(f"note:       {note}")
    name = Path(given.folders[0]).resolve().name if len(given.folders) == 1 else "report"
    _write(page, given.to, name)
    return 0


def _hint(baseline: str, groups: Sequence[str]) -> str:
    """The reason why a group is the baseline where the user names none."""
    which = "the last group" if baseline == groups[-1] else "the last group beside another"
    return f", {which}; --baseline NAME chooses another"


def _baseline_of(
    scored: Sequence[Scored], groups: Sequence[str], chosen: str | None
) -> tuple[str | None, str]:
    """The group that the others are compared with, and a line that names it.

    Args:
        scored: The scores.
        groups: The groups in their order.
        chosen: The group that the user names; None: the last one that can be compared.

    Raises:
        UnknownNameError: There is no such group.
    """
    names = list(dict.fromkeys(each.group for each in scored))
    if chosen is not None:
        if chosen not in names:
            raise UnknownNameError("group", chosen, names, where="as baseline")
        return chosen, f"baseline:   {chosen}"
    if len(names) < 2:
        return None, f"baseline:   none, because there is only one group, {names[0]}"
    baseline = default_baseline(scored, groups)
    if baseline is None:
        return None, "baseline:   none, because no two groups have runs on the same level"
    return baseline, f"baseline:   {baseline}{_hint(baseline, groups)}"


def _write(page: str, to: Path | None, name: str) -> None:
    to = to or Path(f"{name}.html")
    if to.is_dir():
        to = to / f"{name}.html"
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_text(to, page)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the report to {to}: {error.strerror}; choose another file with --to"
        ) from error
    print(f"written to  {short(to.absolute())}")
