"""Graph managers: they build the stack of levels and schedule heat-up, training and evaluation.

May import core, levels and telemetry. Start with `graph_manager`, whose `improve` is the
experiment; `parameters` describes one.
"""

from coach_rl.graph_managers.episode_recorder import EpisodeRecorder
from coach_rl.graph_managers.graph_manager import (
    BasicRLGraphManager,
    GraphManager,
    HACGraphManager,
    HRLGraphManager,
)
from coach_rl.graph_managers.parameters import (
    BasicGraphParameters,
    GraphParameters,
    HACGraphParameters,
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.graph_managers.task import TaskParameters

__all__ = [
    "BasicGraphParameters",
    "BasicRLGraphManager",
    "EpisodeRecorder",
    "GraphManager",
    "GraphParameters",
    "HACGraphManager",
    "HACGraphParameters",
    "HRLGraphManager",
    "LevelParameters",
    "ScheduleParameters",
    "TaskParameters",
    "ValidationParameters",
]
