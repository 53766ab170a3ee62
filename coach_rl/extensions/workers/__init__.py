"""Work of a run in other processes: stepping its environments, and evaluating its agents.

May import what running may. `evaluation_process` is a part of a run.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.workers.evaluation_process import (
        BackgroundEvaluation,
        EvaluationProcess,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BackgroundEvaluation", "EvaluationProcess"]
