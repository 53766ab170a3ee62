"""Actions of any flat space as choices: evenly spaced values, a number each, or a list.

May import filters and core. All is in `discrete_maps`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.discrete_maps.discrete_maps import (
        BoxDiscretization,
        FullDiscreteActionSpaceMap,
        PartialDiscreteActionSpaceMap,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BoxDiscretization", "FullDiscreteActionSpaceMap", "PartialDiscreteActionSpaceMap"]
