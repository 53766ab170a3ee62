"""Graph managers: they build the stack of levels and schedule heat-up, training and evaluation.

May import core, levels and telemetry. Start with `graph_manager`, whose `improve` is the
experiment; `basic_rl_graph_manager` is the one-agent case most presets return.
"""

from coach_rl.graph_managers.basic_rl_graph_manager import (
    BasicGraphParameters,
    BasicRLGraphManager,
)
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    GraphParameters,
    LevelParameters,
    ScheduleParameters,
    TaskParameters,
    ValidationParameters,
)

__all__ = [
    "BasicGraphParameters",
    "BasicRLGraphManager",
    "GraphManager",
    "GraphParameters",
    "LevelParameters",
    "ScheduleParameters",
    "TaskParameters",
    "ValidationParameters",
]
