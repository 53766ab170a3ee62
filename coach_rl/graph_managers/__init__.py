"""Graph managers: they build the stack of levels and schedule heat-up, training and evaluation.

May import core, levels, telemetry and processes. Start with `graph_manager`, whose `improve` is the
experiment; `parameters` describes one, `graph` and `stacking` build it, `evaluations` evaluates it.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.graph_managers.evaluation_watchers import EvaluationWatcher
    from coach_rl.graph_managers.graph_manager import (
        BasicRLGraphManager,
        GraphManager,
        HACGraphManager,
        HRLGraphManager,
    )
    from coach_rl.graph_managers.parameters import (
        BasicGraphParameters,
        CheckpointParameters,
        CollectionParameters,
        GraphParameters,
        HACGraphParameters,
        LevelParameters,
        ScheduleParameters,
        ValidationParameters,
    )
    from coach_rl.graph_managers.stack import SignalParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BasicGraphParameters", "BasicRLGraphManager", "CheckpointParameters",
    "CollectionParameters", "EvaluationWatcher", "GraphManager", "GraphParameters",
    "HACGraphManager", "HACGraphParameters", "HRLGraphManager", "LevelParameters",
    "ScheduleParameters", "SignalParameters", "ValidationParameters",
]  # fmt: skip
