"""Stages: what observations enter through to an agent's policy, and actions leave through.

`stage` has the interface. Every file with a `KIND` is one that agents here have where it says that
it applies: deleting the file removes the stage, as nothing else in the engine names it. May import
what `agents` may. Start with `stage`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind, Stages
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Stage", "StageBuild", "StageKind", "Stages"]
