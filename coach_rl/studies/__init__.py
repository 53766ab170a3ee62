"""Studies: many runs, on one machine or a cluster, and what they say together.

May import core, telemetry, graph_managers and experiment. Start with `job`: one run as data that
another process can be given. `job_run` makes its run, an `Executor` finds it a process
(`local_pool`), `conduct` takes many jobs to their end; `scores` reads their runs, `statistics` says
what several seeds come to.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.studies.conduct import JobStatus
    from coach_rl.studies.executors import Executor
    from coach_rl.studies.job import Job, JobResult, Needs
    from coach_rl.studies.job_run import find_run, identity, run_job
    from coach_rl.studies.local_pool import LocalPool
    from coach_rl.studies.ray_cluster import RayCluster
    from coach_rl.studies.scores import Curve, RunScores, read_scores, runs_below
    from coach_rl.studies.slurm import Slurm
    from coach_rl.studies.statistics import (
        Difference,
        Estimate,
        difference,
        estimate,
        performance_profile,
        probability_of_improvement,
    )
    from coach_rl.studies.study import Published, Study, Variant
    from coach_rl.studies.study_file import load_study
    from coach_rl.studies.study_jobs import check_study, jobs_of
    from coach_rl.studies.sweep import Sweep, SweepResult
    from coach_rl.studies.sweep_run import run_sweep
    from coach_rl.studies.watching import Standing, Viewer, watch
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
    "Slurm",
    "Standing",
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
