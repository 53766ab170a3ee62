"""Fresh seeds: the best settings of a sweep, and the shipped one, beside each other."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.studies.conduct import LOOK_SECONDS, conduct
from coach_rl.studies.executors import Executor
from coach_rl.studies.job_run import Announce
from coach_rl.studies.run_groups import difference_of, episodes_behind
from coach_rl.studies.scores import read_scores
from coach_rl.studies.statistics import CONFIDENCE
from coach_rl.studies.sweep import SHIPPED, Confirmation, Metric, Sweep
from coach_rl.studies.trials import Trial


def confirm(
    sweep: Sweep, metric: Metric, best: Sequence[Trial], executor: Executor, announce: Announce
) -> tuple[Confirmation, ...]:
    """Train the best and the shipped setting from seeds that no trial has seen."""
    if not best:
        return ()
    settings: dict[str, Mapping[str, object]] = {SHIPPED: {}}
    settings |= {f"trial {trial.number}": trial.overrides for trial in best}
    first = sweep.task.seed + 1
    seeds = range(first, first + sweep.fresh_seeds)
    announce(
        f"confirming: {', '.join(settings)} on the fresh seeds {seeds[0]} to {seeds[-1]}, "
        f"{len(settings) * len(seeds)} runs"
    )
    jobs = [
        sweep.job(overrides, {"variant": variant}, seed=seed)
        for seed in seeds
        for variant, overrides in settings.items()
    ]
    with _only_one_confirms(sweep.folder, announce):
        results = conduct(jobs, executor, announce=announce)
    finals: dict[str, list[Mapping[str, float]]] = {variant: [] for variant in settings}
    for job, result in zip(jobs, results, strict=True):
        if result.state == "done" and result.folder is not None:
            final = read_scores(result.folder).final
            if math.isfinite(metric.of(final)):
                finals[job.labels["variant"]].append(final)
        else:
            announce(f"{job.labels['variant']}, seed {job.task.seed}, failed: {result.error}")
    scores = {
        variant: np.array([metric.of(final) for final in own], np.float64)
        for variant, own in finals.items()
    }
    episodes = {variant: episodes_behind(metric.name, own) for variant, own in finals.items()}
    confidence = 1 - (1 - CONFIDENCE) / len(best)
    return tuple(
        Confirmation(
            variant=variant,
            overrides=overrides,
            scores=scores[variant],
            episodes=episodes[variant],
            failed=len(seeds) - len(scores[variant]),
            difference=None
            if variant == SHIPPED or not len(scores[variant]) or not len(scores[SHIPPED])
            else difference_of(
                metric.name,
                scores[variant],
                scores[SHIPPED],
                episodes=(episodes[variant], episodes[SHIPPED]),
                confidence=confidence,
            ),
        )
        for variant, overrides in settings.items()
    )


@contextmanager
def _only_one_confirms(folder: Path, announce: Announce) -> Iterator[None]:
    """One of several processes runs the fresh seeds; the others wait and find them done."""
    place = folder / ".trials" / "fresh"
    place.mkdir(parents=True, exist_ok=True)
    is_announced = False
    while True:
        try:
            with locked(place):
                yield
            return
        except RunInUseError:
            if not is_announced:
                announce("another process runs the fresh seeds; waiting for it")
            is_announced = True
            time.sleep(LOOK_SECONDS)
