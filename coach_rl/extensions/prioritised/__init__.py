"""Prioritised replay: transitions are drawn in proportion to their errors.

May import memories and core. Start with `prioritised`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.prioritised.prioritised import (
        PrioritisedParameters,
        PrioritisedPositions,
        SumTree,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["PrioritisedParameters", "PrioritisedPositions", "SumTree"]
