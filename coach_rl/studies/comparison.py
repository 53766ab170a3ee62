"""Differences between groups of runs, and whether they are more than chance.

scored, notes = group_scores(groups, metric="success_rate")
for comparison in compare(scored, "flat", metric="success_rate"):
    print(comparison.verdict())
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.run_groups import Scored, bounds_of
from coach_rl.studies.statistics import (
    STATISTICS,
    Difference,
    Estimate,
    difference,
    estimate,
    probability_of_improvement,
    standard_deviation,
)

IQM = "iqm"


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
        found, metric = self.difference, self.metric
        ours, theirs = found.seeds
        unclear = (
            f"no difference is established between {self.group} and {self.baseline} with {ours} "
            f"and {theirs} seeds"
        )
        if found.low is None or found.high is None:
            return f"{unclear}, too few for an interval; train with 5 or more of each"
        if not found.is_clear:
            interval = f"95 % interval {interval_of(found, metric)}"
            value = shown(found.value, metric)
            return f"{unclear}: it is {value} ({interval}), which may be zero{self._sight()}"
        side = "higher" if found.value > 0 else "lower"
        by = f"{self.group} is {side} than {self.baseline} by {shown(abs(found.value), metric)}"
        if found.low == found.high:
            return f"{by} with each of its {ours} seeds beside {theirs}"
        low, high = sorted((abs(found.low), abs(found.high)))
        return f"{by} (95 % interval {shown(low, metric)} to {shown(high, metric)})"

    def _sight(self) -> str:
        """The difference that so many seeds would have seen, as the end of a sentence."""
        low, high = bounds_of(self.metric)
        seen = self.difference.detectable
        if not seen:
            return ""
        if seen > high - low:
            return "; so few seeds, which differ so much, cannot establish any"
        return f"; so many seeds see a difference of {shown(seen, self.metric)} 4 times in 5"


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table as text, for a terminal or a page."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def markdown(self) -> str:
        """The table in Markdown; all columns but the first are numbers."""
        align = ("---", *("---:" for _ in self.header[1:]))
        lines = [self.header, align, *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compare(
    scored: Sequence[Scored], baseline: str, *, metric: str, statistic: str = IQM
) -> list[Comparison]:
    """Compare each group with the baseline on every level that both have.

    Args:
        scored: What `group_scores` returned.
        baseline: The group that the others are compared with.
        metric: What the scores are.
        statistic: One of `STATISTICS`.

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
            scores, others = own.scores, theirs[own.level].scores
            found.append(
                Comparison(
                    level=own.level,
                    group=own.group,
                    baseline=baseline,
                    metric=metric,
                    statistic=statistic,
                    difference=difference(
                        scores, others, STATISTICS[statistic], bounds=bounds_of(metric)
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


def possible_comparisons(
    scored: Sequence[Scored], baseline: str | None, *, metric: str, statistic: str = IQM
) -> list[Comparison]:
    """The comparisons with the baseline, or with the last group; none where there are none.

    Args:
        scored: What `group_scores` returned.
        baseline: The group that the others are compared with; None, or one without scores: the
            last.
        metric: What the scores are.
        statistic: One of `STATISTICS`.
    """
    names = list(dict.fromkeys(each.group for each in scored))
    if not names:
        return []
    baseline = baseline if baseline in names else names[-1]
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
            each.group: sorted({run.environment_steps for run in each.runs})
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


def score_table(scored: Sequence[Scored], *, metric: str, title: str = "") -> TextTable:
    """The scores of each group on each level, in a line."""
    header = ("", "level", "seeds", "mean", "std", "IQM", "95 % interval", "lowest", "highest")
    table = TextTable(title=title or metric, header=header)
    for each in scored:
        found = estimate(each.scores, bounds=bounds_of(metric))
        std = standard_deviation(each.scores)
        table.rows.append(
            (
                each.group,
                each.level,
                str(len(each.scores)),
                shown(float(each.scores.mean()), metric),
                "-" if std is None else shown(std, metric),
                shown(found.value, metric),
                interval_of(found, metric),
                shown(float(each.scores.min()), metric),
                shown(float(each.scores.max()), metric),
            )
        )
    return table


def comparison_table(comparisons: Sequence[Comparison]) -> TextTable:
    """The comparisons, a line each."""
    header = ("", "level", "seeds", "difference", "95 % interval", "P(higher)", "95 % interval")
    table = TextTable(title=f"Compared with {comparisons[0].baseline}", header=header)
    for each in comparisons:
        found, chance = each.difference, each.improvement
        table.rows.append(
            (
                each.group,
                each.level,
                f"{found.seeds[0]} and {found.seeds[1]}",
                shown(found.value, each.metric) if found.is_clear else "not established",
                interval_of(found, each.metric),
                f"{chance.value:.2f}",
                "-" if chance.low is None else f"{chance.low:.2f} to {chance.high:.2f}",
            )
        )
    return table


def shown(value: float, metric: str) -> str:
    """A value of a metric for people."""
    if bounds_of(metric)[1] == 1.0:
        return f"{100 * value:.1f} %"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"


def interval_of(found: Estimate, metric: str) -> str:
    """An interval for people; a dash where there is none."""
    if found.low is None or found.high is None:
        return "-"
    return f"{shown(found.low, metric)} to {shown(found.high, metric)}"
