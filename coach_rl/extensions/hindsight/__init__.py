"""Hindsight experience replay: goals that were achieved replace the desired ones in batches.

May import what agents may. Start with `hindsight`; `hindsight_comparison` warns where an
environment judges otherwise, `hindsight_filters` checks the filters of an agent.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.hindsight.hindsight import Hindsight, HindsightParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Hindsight",
    "HindsightParameters",
]
