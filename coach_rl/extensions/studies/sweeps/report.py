"""The report of a sweep in Markdown: its best trials, what mattered, and the fresh seeds."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from coach_rl.configuration.strict_json import write_text
from coach_rl.extensions.studies.comparison import Comparison, score_table
from coach_rl.extensions.studies.statistics import (
    CONFIDENCE,
    NO_SPREAD,
    SAME_MIDDLE,
    difference_text,
)
from coach_rl.extensions.studies.sweeps.fresh_seeds import SHIPPED
from coach_rl.extensions.studies.sweeps.search import SweepResult
from coach_rl.extensions.studies.sweeps.search_space import format_space
from coach_rl.extensions.studies.sweeps.trials import ERROR, RUN
from coach_rl.telemetry.tables import Column, markdown, written

_MOST_ROWS = 10
_STATES = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
"""Names of Optuna's states, in the order of the report."""


def write_report(result: SweepResult) -> Path:
    """Write the report into the sweep's folder; returns the file."""
    page = result.sweep.folder / "sweep.md"
    write_text(page, f"# Sweep {result.sweep.name}\n\n{report(result)}\n\n{conclusion(result)}\n")
    return page


def report(result: SweepResult) -> str:
    """The tables, as Markdown."""
    parts = [_summary(result), *_trials(result), *_importances(result), *_fresh_seeds(result)]
    return "\n\n".join(parts)


def conclusion(result: SweepResult) -> str:
    """The comparison of the best setting with the shipped one, in a sentence."""
    if not result.best:
        return "No trial was completed, so there is no best one."
    if result.fresh is None:
        return (
            f"Trial {result.best[0].number} is the best of {len(result.best)}, by luck as well as "
            "by merit: nothing was trained from fresh seeds."
        )
    best = result.winner
    if best is None or best.difference.reason not in ("", NO_SPREAD, SAME_MIDDLE):
        return f"Too few runs from fresh seeds have a score to compare a trial with {SHIPPED}."
    verdict = result.verdict(best)
    unclear = "" if best.difference.is_clear else ": no difference is established"
    end = ", so the shipped setting is the best" if result.is_shipped_best else ""
    return (
        f"On fresh seeds {best.group} {verdict} the shipped setting{unclear} ({best.metric} "
        f"{_with_interval(best)}, over {best.difference.seeds[0]} fresh seeds each){end}."
    )


def _summary(result: SweepResult) -> str:
    counts = Counter(trial.state.name for trial in result.trials)
    of_all = ", ".join(f"{counts[name]} {word}" for name, word in _STATES.items() if counts[name])
    return (
        f"`{result.sweep.preset}`, {format_space(result.space)}. {len(result.trials)} trials by "
        f"{result.sweep.sampler}, pruned by {result.sweep.pruner}: {of_all}. The best has the "
        f"{result.metric.best} {result.metric.name} in the evaluation at its end, seed "
        f"{result.sweep.task.seed}."
    )


def _trials(result: SweepResult) -> Iterable[str]:
    head = ["trial", result.metric.name, *result.space, "run"]
    rows = [
        [
            trial.number,
            f"{trial.value:,.4g}",
            *(trial.params[name] for name in result.space),
            trial.user_attrs.get(RUN, ""),
        ]
        for trial in result.best[:_MOST_ROWS]
    ]
    if rows:
        yield markdown(written(head, rows), aligned=True)
    for trial in result.trials:
        if trial.state.name == "FAIL":
            yield f"Trial {trial.number} failed: {trial.user_attrs[ERROR]}."


def _importances(result: SweepResult) -> Iterable[str]:
    rows = [[name, f"{share:.0%}"] for name, share in result.importances.items()]
    if rows:
        yield markdown(written(["setting", "importance (PED-ANOVA)"], rows), aligned=True)


def _fresh_seeds(result: SweepResult) -> Iterable[str]:
    if result.fresh is None:
        return
    lead = {each.group: _with_interval(each) for each in result.fresh.comparisons}
    verdict = {each.group: result.verdict(each) for each in result.fresh.comparisons}
    share = 1 - (1 - CONFIDENCE) / (len(result.fresh.settings) - 1)
    more = (
        Column(f"IQM above {SHIPPED} ({share:.1%})", lambda each: lead.get(each.group)),
        Column("verdict", lambda each: verdict.get(each.group), is_text=True),
    )
    if result.fresh.scored:
        scores = score_table(result.fresh.scored, metric=result.metric.name, more=more)
        yield markdown(scores, aligned=True)
    seeds = {each.group: len(each.scores) for each in result.fresh.scored}
    for variant in result.fresh.settings:
        failed = result.sweep.fresh_seeds - seeds.get(variant, 0)
        if failed:
            yield f"{failed} of the fresh seeds of {variant} failed."


def _with_interval(each: Comparison) -> str:
    return f"{each.text(each.difference.value)} ({difference_text(each.difference, each.text)})"
