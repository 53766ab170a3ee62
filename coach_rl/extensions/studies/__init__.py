"""Studies: many runs, on one machine or a cluster, and their statistics.

May import core, telemetry, graph_managers and experiment. Start with `job`: one run as data that
another process can receive, and making its run. An `Executor` provides processes (`places`,
`clusters`), `conduct` runs many jobs to completion. `scores` reads a run's folder, `runs` groups
runs, `statistics` computes intervals over seeds; `tables`, `comparison`, `plots` and `report`
present them. `sweeps` searches for better settings.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster
    from coach_rl.extensions.studies.clusters.slurm import Slurm
    from coach_rl.extensions.studies.conduct import JobStatus
    from coach_rl.extensions.studies.job import (
        Executor,
        Job,
        JobResult,
        Needs,
        find_run,
        identity,
        run_job,
    )
    from coach_rl.extensions.studies.live import RunStatus, Viewer, watch
    from coach_rl.extensions.studies.places import LocalPool
    from coach_rl.extensions.studies.scores import Curve, RunScores, read_scores, runs_below
    from coach_rl.extensions.studies.statistics import (
        Difference,
        Estimate,
        difference,
        estimate,
        performance_profile,
        probability_of_improvement,
    )
    from coach_rl.extensions.studies.study import (
        Published,
        Study,
        Variant,
        check_study,
        jobs_of,
        load_study,
    )
    from coach_rl.extensions.studies.sweeps.search import SweepResult, run_sweep
    from coach_rl.extensions.studies.sweeps.sweep import Sweep
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Curve",
    "Difference",
    "Estimate",
    "Executor",
    "Job",
    "JobResult",
    "JobStatus",
    "LocalPool",
    "Needs",
    "Published",
    "RayCluster",
    "RunScores",
    "RunStatus",
    "Slurm",
    "Study",
    "Sweep",
    "SweepResult",
    "Variant",
    "Viewer",
    "check_study",
    "difference",
    "estimate",
    "find_run",
    "identity",
    "jobs_of",
    "load_study",
    "performance_profile",
    "probability_of_improvement",
    "read_scores",
    "run_job",
    "run_sweep",
    "runs_below",
    "watch",
]
