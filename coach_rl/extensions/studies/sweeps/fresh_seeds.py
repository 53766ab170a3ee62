"""The best settings of a sweep and the shipped one, on seeds that no trial has seen."""

from dataclasses import dataclass

from coach_rl.extensions.studies.comparison import Comparison, compare
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Announce, Executor
from coach_rl.extensions.studies.runs import Row, RunFrame, Scored
from coach_rl.extensions.studies.scores import failures_counted, is_success, read_scores
from coach_rl.extensions.studies.statistics import CONFIDENCE
from coach_rl.extensions.studies.sweeps.search_space import Overrides, drawn_overrides
from coach_rl.extensions.studies.sweeps.trials import Trials

SHIPPED = "shipped"
"""The variant with default values of the searched parameters."""


@dataclass(frozen=True, kw_only=True)
class FreshSeeds:
    """The scores of the best trials and of the shipped setting on fresh seeds."""

    settings: dict[str, Overrides]
    """The changes of the preset by variant: `shipped`, `trial 7`."""
    scored: tuple[Scored, ...]
    """The scores of each variant that has some, in groups of these names."""
    comparisons: tuple[Comparison, ...]
    """The trials beside the shipped setting; all intervals hold together with 95 %."""


def confirm(trials: Trials, executor: Executor, announce: Announce) -> FreshSeeds | None:
    """Train the best and the shipped setting from seeds that no trial has seen.

    Of several processes one does; the others wait for it and find the runs done.

    Returns:
        None where there is nothing to confirm.
    """
    sweep = trials.sweep
    metric = trials.metric.name
    best = trials.best()[: sweep.confirmed]
    if not best:
        return None
    settings: dict[str, Overrides] = {SHIPPED: {}}
    settings |= {f"trial {trial.number}": drawn_overrides(trial.params) for trial in best}
    first = sweep.task.seed + 1
    seeds = range(first, first + sweep.fresh_seeds)
    announce(
        f"confirming: {', '.join(settings)} on the fresh seeds {seeds[0]} to {seeds[-1]}, "
        f"{len(settings) * len(seeds)} runs"
    )
    jobs = [
        sweep.job(overrides, seed=seed, variant=variant)
        for seed in seeds
        for variant, overrides in settings.items()
    ]
    with trials.lock("fresh_seeds"):
        results = conduct(jobs, executor, announce=announce)
    rows = []
    for job, result in zip(jobs, results, strict=True):
        variant = job.labels["variant"]
        if result.state == "done" and result.folder is not None:
            run = read_scores(result.folder)
            evaluation = failures_counted(run.final, [metric] if is_success(metric) else [])
            rows.append(Row(group=variant, run=run, evaluation=evaluation))
        else:
            announce(f"{variant}, seed {job.task.seed}, failed: {result.error}")
    scored = RunFrame(groups=tuple(settings), rows=tuple(rows)).scored(metric)
    comparisons: list[Comparison] = []
    if len(scored) > 1 and scored[0].group == SHIPPED:
        confidence = 1 - (1 - CONFIDENCE) / len(best)
        comparisons = compare(scored, SHIPPED, metric=metric, confidence=confidence)
    return FreshSeeds(settings=settings, scored=tuple(scored), comparisons=tuple(comparisons))
