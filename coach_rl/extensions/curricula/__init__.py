"""Curricula: goals and horizons of a level by schedule, or by its success.

May import what agents may. Start with `curriculum`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.curricula.curriculum import Curriculum
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Curriculum"]
