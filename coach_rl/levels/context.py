"""The context from which a level's own judge and parts are built."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.infos import InfoWatch
from coach_rl.core.levels import LevelDescription, LevelPartContext
from coach_rl.levels.rows import LevelRows


@dataclass(frozen=True, kw_only=True)
class LevelContext(LevelPartContext):
    """The context of a part, with what the core's own need besides."""

    rows: LevelRows
    """The level's."""
    above: Sequence[LevelDescription]
    """The levels above, top first."""
    sender: Sequence[LevelDescription]
    """The level whose decisions it carries out; empty at the top, and where there are several."""
    agent: AnyAgent
    """Makes the level's decisions."""
    agent_rows: Callable[[], Any]
    """Source of the agent's state of the rows, which is another where streams begin again."""
    now: Callable[[], Clock]
    """Source of the clock as the agent reads it."""
    watch: InfoWatch
    """Warns of infos that rewards read."""
