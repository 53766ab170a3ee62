"""Graph managers: they build the stack of levels and schedule heat-up, training and evaluation.

May import core and levels. Start with `graph_manager`, whose `improve` is the
experiment; `parameters` describes one, `graph` and `stacking` build it, `evaluations` evaluates it.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.graph_managers.arrangement import LevelChain
    from coach_rl.graph_managers.graph_manager import (
        BasicRLGraphManager,
        GraphManager,
        HRLGraphManager,
    )
    from coach_rl.graph_managers.level_timing import LevelTiming
    from coach_rl.graph_managers.parameters import (
        BasicGraphParameters,
        CheckpointParameters,
        GraphParameters,
        LevelParameters,
        ScheduleParameters,
        SourceParameters,
        ValidationParameters,
    )
    from coach_rl.graph_managers.stack import TickSource
    from coach_rl.graph_managers.stack_signals import SignalParameters
    from coach_rl.graph_managers.statistics import bootstrap_interval, interquartile_mean
    from coach_rl.graph_managers.watcher import EvaluationWatcher
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BasicGraphParameters", "BasicRLGraphManager", "CheckpointParameters", "EvaluationWatcher",
    "GraphManager", "GraphParameters", "HRLGraphManager", "LevelChain", "LevelParameters",
    "LevelTiming", "ScheduleParameters", "SignalParameters", "SourceParameters", "TickSource",
    "ValidationParameters",
    "bootstrap_interval", "interquartile_mean",
]  # fmt: skip
