"""The command that judges a run's policy from a data set."""

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import opening
from coach_rl.cli.terminal import console_of, short
from coach_rl.cli.train import newest_run
from coach_rl.extensions.evaluation_from_data.estimates import ValueEstimate
from coach_rl.extensions.evaluation_from_data.evaluation import (
    WITHOUT_WEIGHTS,
    EvaluationFromData,
    evaluate_from_data,
)
from coach_rl.extensions.evaluation_from_data.fitted_q import UPDATES
from coach_rl.telemetry.tables import Column, Table, rich_table, table

FULL_NAMES = {
    "is": "importance sampling",
    "wis": "  weighted",
    "pdis": "  per decision",
    "wpdis": "  per decision, weighted",
    "dm": "direct method",
    "dr": "doubly robust",
    "wdr": "  weighted",
}
"""Names of estimators in the table; those that begin with blanks belong to the one above."""


def evaluate(given: Given) -> int:
    """Judge a run's policy from a data set; the exit code."""
    evaluation, file = evaluate_from_data(
        newest_run(given.run),
        given.source,
        estimators=given.estimators or (),
        discount=given.value_discount,
        sampling=given.sampling,
        seed=given.seed,
        model=given.model or "network",
        model_updates=given.model_updates or UPDATES,
        **opening(given),
    )
    print(
        f"{evaluation.transitions:,} transitions of {evaluation.episodes:,} episodes, "
        f"{evaluation.truncated:,} cut off; their mean return, discounted by "
        f"{evaluation.discount:g}: {evaluation.behaviour:,.2f}"
    )
    console_of(plain=given.plain).print(rich_table(estimates_table(evaluation)))
    if file is not None:
        print(f"written to {short(file)}")
    return 0


def estimates_table(evaluation: EvaluationFromData) -> Table:
    """A line for each estimate."""
    return table(
        (
            Column("estimator", lambda each: FULL_NAMES[each.estimator], is_text=True),
            Column("return", lambda each: each.value, "{:,.2f}".format),
            Column("95 % interval", _interval, is_text=True),
            Column("samples", lambda each: each.effective_samples, "{:,.1f}".format),
            Column("", _remark, is_text=True),
        ),
        list(evaluation.estimates.values()),
        title="Evaluation from data",
    )


def _interval(estimate: ValueEstimate) -> str:
    return f"{estimate.low:,.2f} to {estimate.high:,.2f}"


def _remark(estimate: ValueEstimate) -> str:
    if estimate.estimator in WITHOUT_WEIGHTS:
        return "model's error left out"
    return "" if estimate.is_reliable else "unreliable"
