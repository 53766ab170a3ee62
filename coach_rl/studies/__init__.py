"""Studies: many runs, on one machine or a cluster, and what they say together.

May import core, telemetry, graph_managers and experiment. Start with `job`: one run as data that
another process can be given.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.studies.job import Job, JobResult, Needs
    from coach_rl.studies.study import Published, Study, Variant
    from coach_rl.studies.study_file import load_study
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Job",
    "JobResult",
    "Needs",
    "Published",
    "Study",
    "Variant",
    "load_study",
]
