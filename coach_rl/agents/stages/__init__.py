"""Stages, through which observations enter to an agent's policy, and actions leave.

`stage` has the interface. Every file with a `KIND` is one that agents have where its builder
returns one: deleting the file removes the stage, as nothing else in the engine names it. May import
what `agents` may. Start with `stage`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
    from coach_rl.agents.stages.stages import Stages
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Stage", "StageBuild", "StageKind", "Stages"]
