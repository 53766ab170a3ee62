"""Differences between groups of runs, and whether they are more than chance.

scored, notes = group_scores(frame, metric="success_rate")
for comparison in compare(scored, "flat", metric="success_rate"):
    print(comparison.verdict())
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.extensions.studies.runs import IQM, Scored, difference_of, estimate_of, is_share
from coach_rl.extensions.studies.statistics import (
    CONFIDENCE,
    NO_SPREAD,
    NOT_FINITE,
    POWER,
    SAME_MIDDLE,
    TOO_FEW,
    Difference,
    Estimate,
    difference_text,
    interval_text,
    probability_of_improvement,
    standard_deviation,
)
from coach_rl.telemetry.tables import Column, Table, table


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A group beside the baseline, on one level."""

    level: str
    group: str
    baseline: str
    metric: str
    statistic: str
    difference: Difference
    improvement: Estimate
    """The chance that a run of the group scores higher than one of the baseline."""

    def verdict(self) -> str:
        """The result, in a sentence."""
        found = self.difference
        if found.is_clear:
            return self._established()
        ours, theirs = found.seeds
        unclear = (
            f"no difference is established between {self.group} and {self.baseline} with {ours} "
            f"and {theirs} seeds"
        )
        if found.reason == TOO_FEW:
            return f"{unclear}, too few for an interval; train with 5 or more of each"
        if found.reason == NOT_FINITE:
            return f"{unclear}: some scores are not finite"
        facts = [f"95 % interval {difference_text(found, self.text)}"]
        if found.reason == NO_SPREAD and found.of_episodes is None:
            facts = ["no interval, because the seeds of each group are equal"]
        if found.reason == SAME_MIDDLE:
            facts = [
                "no interval, because the middle half of the seeds of each group is equal; "
                "--statistic mean has one"
            ]
        if found.p_value is not None:
            facts.append(f"permutation test over seeds p = {found.p_value:.2g}")
        end = ", which may be zero" if found.p_value is None else ""
        return f"{unclear}: it is {self.text(found.value)} ({', '.join(facts)}){end}{self._power()}"

    def _established(self) -> str:
        """The verdict where there is a difference."""
        found = self.difference
        side = "higher" if found.value > 0 else "lower"
        by = f"{self.group} is {side} than {self.baseline} by {self.text(abs(found.value))}"
        ends = (found.low, found.high) if found.of_episodes is None else found.of_episodes
        low, high = sorted(abs(end) for end in ends if end is not None)
        interval = f"95 % interval {self.text(low)} to {self.text(high)}"
        if found.of_episodes is None:
            return f"{by} ({interval})"
        ours, theirs = found.seeds
        return f"{by} with each of its {ours} seeds beside {theirs} ({interval} over episodes)"

    def _power(self) -> str:
        """The difference that so many seeds would establish, as another sentence."""
        size, (ours, theirs) = self.difference.detectable, self.difference.seeds
        if self.difference.low is None:
            return ""
        seeds = f"{ours} seeds each" if ours == theirs else f"{ours} and {theirs} seeds"
        if size is None:
            return f". With {seeds}, which differ this much, no difference would be found"
        return (
            f". With {seeds}, only a difference of about {self.text(size)} would be found with "
            f"{POWER:.0%} power".replace("%", " %")
        )

    def text(self, value: float) -> str:
        """A value of the metric for people."""
        return shown(value, self.metric)


def compare(
    scored: Sequence[Scored],
    baseline: str,
    *,
    metric: str,
    statistic: str = IQM,
    confidence: float = CONFIDENCE,
) -> list[Comparison]:
    """Compare each group with the baseline on every level that both have.

    Args:
        scored: What `group_scores` returned.
        baseline: The group that the others are compared with.
        metric: What the scores are.
        statistic: One of `STATISTICS`.
        confidence: The share of intervals that hold the true difference.

    Raises:
        UnknownNameError: There is no such group.
        ConfigurationError: No group has a level in common with the baseline.
    """
    names = list(dict.fromkeys(each.group for each in scored))
    if baseline not in names:
        raise UnknownNameError("group", baseline, names, where="as baseline")
    if len(names) < 2:
        raise ConfigurationError(
            f"there is only one group of runs with a score, {names[0]}; a comparison needs two: "
            "`coach compare FOLDER FOLDER`"
        )
    theirs = {each.level: each for each in scored if each.group == baseline}
    found = []
    for own in scored:
        if own.group != baseline and own.level in theirs:
            scores = own.scores
            others = theirs[own.level].scores
            found.append(
                Comparison(
                    level=own.level,
                    group=own.group,
                    baseline=baseline,
                    metric=metric,
                    statistic=statistic,
                    difference=difference_of(
                        metric,
                        scores,
                        others,
                        episodes=(own.episodes, theirs[own.level].episodes),
                        statistic=statistic,
                        confidence=confidence,
                    ),
                    improvement=probability_of_improvement([(scores, others)]),
                )
            )
    if not found:
        levels = {
            name: ", ".join(each.level for each in scored if each.group == name) for name in names
        }
        ran = "; ".join(f"{name} on {level}" for name, level in levels.items())
        raise ConfigurationError(
            f"runs on different environments cannot be compared: {ran}; compare runs on the same "
            "level"
        )
    return found


def default_baseline(scored: Sequence[Scored], groups: Sequence[str]) -> str | None:
    """The last group that shares a level with another one; None where none does.

    Args:
        scored: What `group_scores` returned, level by level.
        groups: The groups in their order, also those without scores.
    """
    counts = Counter(each.level for each in scored)
    shared = {each.group for each in scored if counts[each.level] > 1}
    return next((name for name in reversed(groups) if name in shared), None)


def possible_comparisons(
    scored: Sequence[Scored],
    baseline: str | None,
    *,
    metric: str,
    statistic: str = IQM,
    groups: Sequence[str] = (),
) -> list[Comparison]:
    """The comparisons with the baseline; none where there are none.

    Args:
        scored: What `group_scores` returned.
        baseline: The group that the others are compared with; None, or one without scores:
            `default_baseline`.
        metric: What the scores are.
        statistic: One of `STATISTICS`.
        groups: The groups in their order; empty for that of their scores.
    """
    names = list(dict.fromkeys(each.group for each in scored))
    if baseline not in names:
        baseline = default_baseline(scored, groups or names)
    if baseline is None:
        return []
    theirs = {each.level for each in scored if each.group == baseline}
    if not any(each.group != baseline and each.level in theirs for each in scored):
        return []
    return compare(scored, baseline, metric=metric, statistic=statistic)


def overall_improvement(
    scored: Sequence[Scored], group: str, baseline: str
) -> tuple[Estimate, int] | None:
    """The probability of improvement over all levels that two groups share, and their number.

    Scores of different levels cannot be averaged, but the chance of a higher one can. None where
    they share fewer than two levels.
    """
    by_group = {(each.group, each.level): each.scores for each in scored}
    pairs = [
        (scores, by_group[baseline, level])
        for (name, level), scores in by_group.items()
        if name == group and (baseline, level) in by_group
    ]
    return (probability_of_improvement(pairs), len(pairs)) if len(pairs) > 1 else None


def notes_on(scored: Sequence[Scored]) -> list[str]:
    """Notes for readers of a comparison about its runs, a line each."""
    notes = []
    for level in dict.fromkeys(each.level for each in scored):
        lengths = {
            each.group: sorted({run.moments for run in each.runs})
            for each in scored
            if each.level == level
        }
        every = {steps for own in lengths.values() for steps in own}
        if max(every) > 1.01 * min(every):
            each = "; ".join(
                f"{name} {' to '.join(f'{steps:,}' for steps in dict.fromkeys((own[0], own[-1])))}"
                for name, own in lengths.items()
            )
            notes.append(f"runs on {level} trained for different lengths, in steps: {each}")
    names = list(dict.fromkeys(each.group for each in scored))
    levels = {name: {each.level for each in scored if each.group == name} for name in names}
    for level in sorted(set[str]().union(*levels.values())):
        without = [name for name in names if level not in levels[name]]
        if without:
            notes.append(
                f"not compared on {level}, where there are no scores: {', '.join(without)}"
            )
    return notes


def score_table(
    scored: Sequence[Scored], *, metric: str, title: str = "", more: Sequence[Column] = ()
) -> Table:
    """The scores of each group on each level, in a row.

    Args:
        scored: The groups.
        metric: What the scores are.
        title: The table's title; empty for the metric.
        more: Further columns.
    """

    def in_unit(value: float) -> str:
        return shown(float(value), metric)

    def estimated(each: Scored) -> Estimate:
        return estimate_of(metric, each.scores, episodes=each.episodes)

    columns = (
        Column("", lambda each: each.group, is_text=True),
        Column("level", lambda each: each.level, is_text=True),
        Column("seeds", lambda each: len(each.scores)),
        Column("mean", lambda each: each.scores.mean(), in_unit),
        Column("std", lambda each: standard_deviation(each.scores), in_unit, missing="-"),
        Column("IQM", lambda each: estimated(each).value, in_unit),
        Column("95 % interval", lambda each: interval_of(estimated(each), metric)),
        Column("lowest", lambda each: each.scores.min(), in_unit),
        Column("highest", lambda each: each.scores.max(), in_unit),
    )
    return table((*columns, *more), scored, title=title or metric)


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """The comparisons, a row each."""
    columns = (
        Column("", lambda each: each.group, is_text=True),
        Column("level", lambda each: each.level, is_text=True),
        Column("seeds", lambda each: "{} and {}".format(*each.difference.seeds)),
        Column("difference", _established),
        Column("95 % interval", lambda each: difference_text(each.difference, each.text)),
        Column("P(higher)", lambda each: each.improvement.value, "{:.2f}".format),
        Column("95 % interval", lambda each: interval_text(each.improvement, "{:.2f}".format)),
    )
    return table(columns, comparisons, title=f"Compared with {comparisons[0].baseline}")


def _established(each: Comparison) -> str:
    found = each.difference
    return each.text(found.value) if found.is_clear else "not established"


def shown(value: float, metric: str) -> str:
    """A value of a metric for people."""
    if is_share(metric):
        return f"{100 * value:.1f} %"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def interval_of(found: Estimate, metric: str) -> str:
    """An interval of a metric as text, or the reason why there is none."""
    return interval_text(found, lambda value: shown(value, metric))
