"""Optimisers besides Adam, as parameters that agents take.

May import architectures and core. `adamw` and `rmsprop` describe one each.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.optimizers.adamw import AdamWParameters
    from coach_rl.extensions.optimizers.rmsprop import RMSpropParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AdamWParameters", "RMSpropParameters"]
