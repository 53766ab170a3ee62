"""One built filter: a stage of a chain.

An `InputStage` maps observations or rewards on their way to the agent and separates its three
effects:

    stage.advance(values, memory, rows, boundaries)   # the only writer of row memory, always called
    stage.update(values, memory, rows)                # the only writer of statistics, to learn only
    values = stage.apply(values, memory, rows)        # changes nothing

An `ActionStage` maps actions on their way to the environment, and back. Most filters remember
nothing at all: their `build` returns a `StatelessInputStage` or a `StatelessActionStage` around a
function.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.errors import CheckpointError, SpaceError, require
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space
from coach_rl.core.state import State, Stateful

RowMemory = Mapping[str, Array]
"""State of one stage per row, by the stage's own names, each [N, ...]; written in place."""


class InputStage(Saved, ABC):
    """One filter for observations or rewards, as built for one space.

    Args:
        output_space: What comes out of `apply`, for one row.
    """

    TIMED: ClassVar[Mapping[str, str]] = {"advance": "", "update": "", "apply": ""}

    def __init__(self, output_space: Space) -> None:
        self.output_space = output_space

    def new_rows(self, num_rows: int, /) -> dict[str, Array]:  # noqa: ARG002 (for subclasses)
        """Fresh memory, each array [num_rows, ...]; empty when nothing is remembered."""
        return {}

    def advance(
        self, values: Array, memory: RowMemory, rows: IntArray, boundaries: BoolArray, /
    ) -> None:
        """Write these values into the memory of their rows, in place.

        Args:
            values: [R, ...].
            memory: Made by `new_rows`.
            rows: [R].
            boundaries: [R] for an observation: the episode starts with it; for a reward: the
                episode ends after it.
        """

    def update(self, values: Array, memory: RowMemory, rows: IntArray, /) -> None:
        """Take values [R, ...] into the statistics; `memory` is already advanced."""

    @abstractmethod
    def apply(self, values: Array, memory: RowMemory, rows: IntArray, /) -> Array:
        """The filtered values, a new array [R, ...]; `memory` is already advanced and only read."""


class StatelessInputStage(InputStage):
    """A filter that is only a function.

    Args:
        output_space: What comes out, for one row.
        function: From [R, ...] to a new array [R, ...].
    """

    def __init__(self, output_space: Space, function: Callable[[Array], Array]) -> None:
        super().__init__(output_space)
        self._function = function

    def apply(self, values: Array, _memory: RowMemory, _rows: IntArray, /) -> Array:
        return self._function(values)


class InputStageParameters(Protocol):
    """A frozen description of a filter for observations or rewards."""

    def build(self, space: Space) -> InputStage:
        """The filter for values of `space` (one row's); SpaceError when they don't suit it."""
        ...


class ActionStage(Stateful, Protocol):
    """One filter for actions, as built for one space of its environment side."""

    @property
    def agent_space(self) -> Space:
        """The space of actions on the agent's side, for one row."""
        ...

    def apply(self, action: Array) -> Array:
        """Map actions from the agent's side to the environment's, [R, ...]."""
        ...

    def inverse(self, action: Array) -> Array:
        """The way back, [R, ...]; SpaceError where there is none."""
        ...


class StatelessActionStage(Saved):
    """An action filter that is only a pair of functions.

    Args:
        agent_space: What comes in from the agent's side, for one row.
        forward: From the agent's side to the environment's, [R, ...] to [R, ...].
        backward: The way back.
    """

    TIMED: ClassVar[Mapping[str, str]] = {"apply": ""}

    def __init__(
        self,
        agent_space: Space,
        *,
        forward: Callable[[Array], Array],
        backward: Callable[[Array], Array],
    ) -> None:
        self.agent_space = agent_space
        self._forward = forward
        self._backward = backward

    def apply(self, action: Array) -> Array:
        return self._forward(action)

    def inverse(self, action: Array) -> Array:
        return self._backward(action)


class ActionStageParameters(Protocol):
    """A frozen description of an action filter."""

    def build(self, space: Space) -> ActionStage:
        """The filter for an environment side that takes `space`; SpaceError when it can't."""
        ...


def stage_states(stages: Sequence[Stateful]) -> State:
    """The states of those stages that have one, by position."""
    states = {str(index): stage.state_dict() for index, stage in enumerate(stages)}
    return {index: state for index, state in states.items() if state}


def load_stage_states(stages: Sequence[Stateful], state: State, *, owner: str) -> None:
    """Take over what `stage_states` returned for equally built stages.

    Raises:
        CheckpointError: The state belongs to other filters.
    """
    expected = sorted(stage_states(stages))
    if sorted(state) != expected:
        raise CheckpointError(
            f"the saved state of {owner} is of the filters at positions {sorted(state)}, but those "
            f"with a state are at {expected}; use the filters the checkpoint was made with"
        )
    for index, saved in state.items():
        stages[int(index)].load_state_dict(saved)


def describe(space: Space) -> str:
    """The space in a few words on one line; the bounds of a Box are summed up."""
    if isinstance(space, spaces.Box):
        return f"Box({space.low.min():g}..{space.high.max():g}, {space.shape}, {space.dtype})"
    return " ".join(repr(space).split())


def box_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box with at least one element.

    Raises:
        SpaceError: It is another kind of space.
    """
    if not isinstance(space, spaces.Box) or 0 in space.shape:
        raise SpaceError(f"{owner} needs a Box that isn't empty, got {describe(space)}")
    return space


def bounded_box_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box whose every element has a lower and a higher, finite bound.

    Raises:
        SpaceError: It is another kind of space, or a side is unbounded or empty.
    """
    box = box_of(owner, space)
    if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
        raise SpaceError(
            f"{owner} needs a Box with finite bounds on all sides, got {describe(box)}"
        )
    if not (box.low < box.high).all():
        raise SpaceError(f"{owner} needs a Box whose low is below its high, got {describe(box)}")
    return box


def per_element(
    owner: str, field: str, value: float | tuple[float, ...], shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """One number for all elements, or a number each in row-major order, as an array of `shape`.

    Raises:
        SpaceError: There are not as many numbers as elements.
    """
    numbers = np.asarray(value, dtype=np.float64)
    size = int(np.prod(shape))
    if numbers.ndim and numbers.size != size:
        raise SpaceError(
            f"{owner}.{field} has {numbers.size} numbers, but the Box of shape {shape} has {size} "
            "elements; give one number for all or one for each"
        )
    return np.array(np.broadcast_to(numbers.reshape(shape if numbers.ndim else ()), shape))


def require_limits(owner: str, low: float | None, high: float | None) -> None:
    """Raise `ParameterError` unless one of the limits is given, and low does not exceed high."""
    require(low is not None or high is not None, f"{owner} needs low, high or both, got neither")
    require(
        low is None or high is None or low <= high,
        f"{owner}.low must not exceed high, got {low} and {high}",
    )


def box(low: Array, high: Array, dtype: npt.DTypeLike) -> spaces.Box:
    """A Box with these bounds, cast to its dtype first."""
    kind = np.dtype(dtype).type
    return spaces.Box(np.asarray(low, dtype=kind), np.asarray(high, dtype=kind), dtype=kind)
