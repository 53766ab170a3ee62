"""A study's variants as groups of runs, with the scores that the study gives them."""

import math
from collections.abc import Sequence

import numpy as np

from coach_rl.studies.run_groups import RunGroup, Scored, episodes_behind
from coach_rl.studies.study import Study
from coach_rl.studies.study_runs import StudyRun


def variant_groups(study: Study, runs: Sequence[StudyRun]) -> list[RunGroup]:
    """The runs of each variant that have begun; variants without any are left out.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
    """
    groups = [
        RunGroup(
            name=variant.name,
            runs=tuple(
                sorted(
                    (run.scores for run in runs if run.variant == variant.name and run.scores),
                    key=lambda run: (run.level, run.seed),
                )
            ),
        )
        for variant in study.variants
    ]
    return [group for group in groups if group.runs]


def variant_scores(study: Study, runs: Sequence[StudyRun]) -> list[Scored]:
    """The scores of each variant's finished runs, level by level; those without one are left out.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
    """
    found = []
    for variant in study.variants:
        known = [
            (run.scores, score, run.evaluation(study))
            for run in runs
            if run.variant == variant.name
            and run.scores is not None
            and (score := run.score(study)) is not None
            and math.isfinite(score)
        ]
        if known:
            found.append(
                Scored(
                    group=variant.name,
                    level=known[0][0].level,
                    runs=tuple(run for run, _, _ in known),
                    scores=np.array([score for _, score, _ in known], np.float64),
                    episodes=episodes_behind(study.metric, [of for _, _, of in known]),
                )
            )
    return sorted(found, key=lambda each: each.level)
