"""Number all of the environment's actions for an agent with discrete actions."""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.action.target_table import TargetAction, table_stage, target_array
from coach_rl.filters.space_requirements import describe
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class FullDiscreteActionSpaceMap:
    """Every action of a countable space gets a number of its own, so none is out of reach.

    Turns MultiDiscrete and MultiBinary actions into Discrete ones, or renumbers a Discrete space.
    """

    target_actions: tuple[TargetAction, ...] | None = None
    """All actions in the agent's order; None: ascending, the last element varies fastest."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a finite space; `target_actions` names every action once."""
        owner = "FullDiscreteActionSpaceMap"
        sizes, start = _sizes_and_start(owner, space)
        count = int(np.prod(sizes, dtype=object))
        if self.target_actions is None:
            return _enumeration(space, sizes, start)
        if len(self.target_actions) != count:
            raise SpaceError(
                f"{owner}.target_actions has {len(self.target_actions)} actions, but the "
                f"environment's {describe(space)} has {count}; name them all, or use "
                "PartialDiscreteActionSpaceMap"
            )
        return table_stage(owner, target_array(owner, self.target_actions, space))


def _sizes_and_start(owner: str, space: Space) -> tuple[tuple[int, ...], npt.NDArray[np.int64]]:
    match space:
        case spaces.Discrete():
            return (int(space.n),), np.array([space.start], dtype=np.int64)
        case spaces.MultiDiscrete():
            return tuple(int(size) for size in space.nvec.reshape(-1)), space.start.reshape(-1)
        case spaces.MultiBinary():
            elements = int(np.prod(space.shape))
            return (2,) * elements, np.zeros(elements, dtype=np.int64)
    raise SpaceError(
        f"{owner} needs a Discrete, MultiDiscrete or MultiBinary space, got {describe(space)}; "
        "a Box is made discrete by BoxDiscretization"
    )


def _enumeration(
    space: Space, sizes: tuple[int, ...], start: npt.NDArray[np.int64]
) -> StatelessActionStage:
    shape = space.shape or ()

    def forward(action: Array) -> Array:
        flat = np.stack(np.unravel_index(action, sizes), axis=1) + start  # [R, elements]
        return flat.reshape(len(action), *shape).astype(space.dtype)

    def backward(action: Array) -> Array:
        flat = action.reshape(len(action), len(sizes)).astype(np.int64) - start
        return np.asarray(np.ravel_multi_index(tuple(flat.T), sizes), dtype=np.int64)

    count = int(np.prod(sizes, dtype=object))
    return StatelessActionStage(spaces.Discrete(count), forward=forward, backward=backward)
