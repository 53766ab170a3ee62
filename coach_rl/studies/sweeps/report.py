"""The report of a sweep in Markdown: its best trials, what mattered, and the fresh seeds."""

from collections.abc import Sequence
from pathlib import Path

from coach_rl.configuration.strict_json import write_text
from coach_rl.core.typed_values import describe_value
from coach_rl.studies.runs import estimate_of
from coach_rl.studies.statistics import (
    NO_SPREAD,
    Difference,
    difference_text,
    mean,
    standard_deviation,
    with_interval,
)
from coach_rl.studies.sweeps.search_space import format_space
from coach_rl.studies.sweeps.sweep import SHIPPED, Confirmation, SweepResult
from coach_rl.studies.sweeps.trials import Trial
from coach_rl.telemetry.tables import markdown, written

PAGE = "sweep.md"
"""The report's file in the sweep's folder."""
_MOST_ROWS = 10


def write_report(result: SweepResult) -> Path:
    """Write the report into the sweep's folder; returns the file."""
    page = result.sweep.folder / PAGE
    write_text(page, f"# Sweep {result.sweep.name}\n\n{report(result)}\n\n{conclusion(result)}\n")
    return page


def report(result: SweepResult) -> str:
    """The tables, as Markdown."""
    parts = [_summary(result), _trials(result), _importances(result), _fresh_seeds(result)]
    return "\n\n".join(part for part in parts if part)


def conclusion(result: SweepResult) -> str:
    """The comparison of the best setting with the shipped one, in a sentence."""
    if not result.best:
        return "No trial was completed, so there is no best one."
    if not result.confirmations:
        return (
            f"Trial {result.best[0].number} is the best of {len(result.best)}, by luck as well as "
            "by merit: nothing was trained from fresh seeds."
        )
    best = result.winner
    assert best is not None
    verdict, number = result.verdict(best), best.difference
    if number is None or number.reason not in ("", NO_SPREAD):
        return (
            f"Too few runs from fresh seeds have a score to compare {best.variant} with {SHIPPED}."
        )
    words = {
        "beats": f"{best.variant} beats the shipped setting",
        "loses": f"{best.variant} loses to the shipped setting",
        "ties": f"{best.variant} ties with the shipped setting: no difference is established",
    }
    what = f"{number.value:+.4g} {result.metric.name}, {difference_text(number, _number)}"
    seeds = f"over {number.seeds[0]} fresh seeds each" if number.seeds else ""
    return f"On fresh seeds {words[verdict]} ({what}, {seeds})."


def _summary(result: SweepResult) -> str:
    counts = {
        state: sum(trial.state == state for trial in result.trials)
        for state in ("done", "pruned", "failed")
    }
    of_all = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    best = "largest" if result.metric.is_largest_best else "smallest"
    return (
        f"`{result.sweep.preset}`, {format_space(result.space)}. {len(result.trials)} trials by "
        f"{result.sweep.sampler}, pruned by {result.sweep.pruner}: {of_all}. The best has the "
        f"{best} {result.metric.name} in the evaluation at its end, seed {result.sweep.task.seed}."
    )


def _trials(result: SweepResult) -> str:
    names = list(result.space)
    rows = [
        [str(trial.number), _number(trial.value), *_values(trial, names), trial.run]
        for trial in result.best[:_MOST_ROWS]
    ]
    failed = [trial for trial in result.trials if trial.state == "failed"]
    lines = [f"Trial {trial.number} failed: {trial.error}." for trial in failed]
    header = ["trial", result.metric.name, *names, "run"]
    return "\n\n".join([_table(header, rows)] * bool(rows) + lines)


def _importances(result: SweepResult) -> str:
    rows = [[name, f"{share:.0%}"] for name, share in result.importances.items()]
    return _table(["setting", "importance (PED-ANOVA)"], rows) if rows else ""


def _fresh_seeds(result: SweepResult) -> str:
    if not result.confirmations:
        return ""
    share = 1 - (1 - 0.95) / max(1, len(result.confirmations) - 1)
    rows = [_fresh_row(result, each) for each in result.confirmations]
    name = result.metric.name
    header = ["setting", "fresh seeds", f"mean {name}", "standard deviation", "IQM (95 %)"]
    return _table([*header, f"IQM above shipped ({share:.1%})", "verdict"], rows)


def _fresh_row(result: SweepResult, each: Confirmation) -> list[str]:
    seeds = str(len(each.scores)) + (f" ({each.failed} failed)" if each.failed else "")
    if not len(each.scores):
        return [each.variant, seeds, "", "", "", "", ""]
    spread, name = standard_deviation(each.scores), result.metric.name
    return [
        each.variant,
        seeds,
        _number(float(mean(each.scores))),
        _number(spread),
        with_interval(estimate_of(name, each.scores, episodes=each.episodes), _number),
        "" if each.difference is None else _with_interval(each.difference),
        "" if each.difference is None else result.verdict(each),
    ]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return markdown(written(header, rows), aligned=True)


def _values(trial: Trial, names: Sequence[str]) -> list[str]:
    return [describe_value(trial.overrides[name]) for name in names]


def _with_interval(number: Difference) -> str:
    return f"{_number(number.value)} ({difference_text(number, _number)})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
