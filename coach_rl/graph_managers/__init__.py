"""Graph managers: they build the stack of levels and schedule heat-up, training and evaluation.

May import core, levels and telemetry. Start with `graph_manager`, whose `improve` is the
experiment; `basic_rl_graph_manager` is the one-agent case most presets return, `hrl_graph_manager`
and `hac_graph_manager` are the hierarchies.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.graph_managers.basic_rl_graph_manager import (
        BasicGraphParameters,
        BasicRLGraphManager,
    )
    from coach_rl.graph_managers.episode_recorder import EpisodeRecorder
    from coach_rl.graph_managers.graph_manager import GraphManager
    from coach_rl.graph_managers.hac_graph_manager import HACGraphManager, HACGraphParameters
    from coach_rl.graph_managers.hrl_graph_manager import HRLGraphManager, HRLGraphParameters
    from coach_rl.graph_managers.parameters import (
        LevelParameters,
        ScheduleParameters,
        TaskParameters,
        ValidationParameters,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BasicGraphParameters", "BasicRLGraphManager", "EpisodeRecorder", "GraphManager",
    "HACGraphManager", "HACGraphParameters", "HRLGraphManager", "HRLGraphParameters",
    "LevelParameters", "ScheduleParameters", "TaskParameters", "ValidationParameters",
]  # fmt: skip
