"""A trained low level in another world: `coach -p moved_low_level.py -cp "trained=RUN"`."""

from dataclasses import dataclass

from two_levels import Panel as TwoLevels
from two_levels import stack

import coach_rl as rl


@dataclass(frozen=True, kw_only=True)
class Panel(TwoLevels):
    """Settings to change with -cp."""

    trained: str | None = None
    """Run whose low level is taken, and no longer learns; None learns one."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The top begins from nothing above a level that already reaches its goals."""
    is_trained = panel.trained is not None
    low = {"load": panel.trained, "frozen": is_trained}
    return stack(panel, low=low, environment=rl.GoalPointMassParameters(max_episode_steps=80))
