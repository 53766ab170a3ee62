"""Random shifts of pictures that a learner samples: DrQ (Kostrikov et al. 2020, arXiv:2004.13649).

    memory=ReplayMemoryParameters(parts=(RandomShiftParameters(),))

For any agent with a replay memory but recurrent ones. Pictures in the memory stay as they are.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from coach_rl.core.errors import SpaceError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.extensions.drq.encoder import is_picture, require_channels_last
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS, POSITIONS, WEIGHTS, Columns
from coach_rl.memories.parts import MemoryPart, MemoryPartParameters, PartContext, ReplaySettings
from coach_rl.memories.samplers import SamplerUnit, UnitContext


@parameter_class
class RandomShiftParameters(MemoryPartParameters):
    """Pictures in batches, moved by random numbers of pixels, their edges repeated.

    A transition has one shift for its observation and another one for its next observation; all
    pictures of a stack are moved alike.

    Each transition that is drawn is in a batch `targets` times `losses` times: with each pair of
    `targets` shifted next observations and `losses` shifted observations. The gradient of squared
    errors is that of DrQ's equation 3, whose targets are means over K shifts and whose losses are
    means over M. It takes the work of a batch K M times as large.
    """

    pad: Positive[int] = 4
    """Most pixels of a shift, in each of the four directions."""
    targets: Positive[int] = 1
    """K, shifts of the next observation that a target is averaged over; DrQ: 2, its successor
    (Yarats et al. 2021, arXiv:2107.09645): 1."""
    losses: Positive[int] = 1
    """M, shifts of the observation that a loss is averaged over; DrQ: 2, its successor: 1."""
    keys: NonEmpty[tuple[str, ...]] | None = None
    """Observation keys that are shifted; None: all pictures, bytes with three axes or four."""

    @property
    def copies(self) -> int:
        """Number of times that a drawn transition is in a batch."""
        return self.targets * self.losses

    def check(self, memory: ReplaySettings) -> None:
        require(
            memory.draws.is_single,
            "RandomShiftParameters needs transitions that are drawn one by one, got "
            f"draws={memory.draws}: the pictures of a sequence would not be moved alike",
        )
        require(
            self.copies == 1 or memory.relabelling is None,
            "RandomShiftParameters.targets and losses must be 1 with relabelled goals, which each "
            f"copy of a transition would have of its own; got {self.targets} and {self.losses}",
        )

    def at(self, context: PartContext) -> "RandomShift":
        observed = context.observation_space.spaces
        keys = tuple(key for key, part in observed.items() if is_picture(part))
        for key in self.keys or ():
            if key not in observed:
                raise UnknownNameError("observation key", key, observed)
        if not keys or not set(self.keys or ()) <= set(keys):
            raise SpaceError(
                "RandomShiftParameters shifts pictures, bytes [height, width, ...] of three axes "
                f"or four, which are {', '.join(keys) or 'not'} among the observations "
                f"{sorted(observed)}; leave it out, or name pictures by `keys`"
            )
        for key in self.keys or keys:
            require_channels_last(key, observed[key])
        return RandomShift(self, self.keys or keys)


class RandomShift(MemoryPart):
    """The sampler units of random shifts.

    Args:
        params: Their settings.
        keys: The observation keys.
    """

    def __init__(self, params: RandomShiftParameters, keys: tuple[str, ...]) -> None:
        self._params = params
        self._keys = keys

    def units(
        self,
        context: UnitContext,
        own: Sequence[SamplerUnit],  # noqa: ARG002 - as `MemoryPart`
    ) -> list[tuple[str, SamplerUnit]]:
        params = self._params
        shifted = ("sample", ShiftedPictures(params, self._keys, context.rng))
        if params.copies == 1:
            return [shifted]
        return [("positions", CopiedPositions(params.copies)), shifted]


class CopiedPositions(SamplerUnit):
    """Each position that was drawn, several times in a row.

    Args:
        copies: How many times.
    """

    name = "copies"
    inputs = (POSITIONS, WEIGHTS)
    outputs = (POSITIONS, WEIGHTS)

    def __init__(self, copies: int) -> None:
        self._copies = copies

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        return {path: batch[path].repeat_interleave(self._copies) for path in self.outputs}


class ShiftedPictures(SamplerUnit):
    """Pictures moved by whole pixels, drawn from the memory's generator.

    The copies of a transition are in the order (first shift of the observation, first of the next
    one), (first, second), ..., (second, first), ...

    Args:
        params: The settings.
        keys: The observation keys.
        rng: The memory's random stream.
    """

    name = "random_shift"

    def __init__(
        self, params: RandomShiftParameters, keys: tuple[str, ...], rng: np.random.Generator
    ) -> None:
        before = tuple(f"{OBSERVATIONS}{key}" for key in keys)
        after = tuple(f"{NEXT_OBSERVATIONS}{key}" for key in keys)
        self.inputs = self.outputs = (*before, *after)
        self._pad = params.pad
        self._rng = rng
        self._groups = ((before, params.losses, 1), (after, params.targets, 0))
        """Paths, the number of shifts of each transition, and the axis of copies [M, K] that does
        not change them."""
        self._copies = (params.losses, params.targets)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        moved: Columns = {}
        for paths, count, repeated in self._groups:
            rows = len(batch[paths[0]]) // (self._copies[0] * self._copies[1])
            drawn = self._rng.integers(0, 2 * self._pad + 1, (rows, count, 2))
            shifts = np.expand_dims(drawn, 1 + repeated)  # [rows, M, K, 2] but for one axis
            shifts = np.broadcast_to(shifts, (rows, *self._copies, 2)).reshape(-1, 2)
            for path in paths:
                moved[path] = shifted(batch[path], torch.from_numpy(shifts - self._pad))
        return moved


def shifted(pictures: Tensor, shifts: Tensor) -> Tensor:
    """Pictures moved by whole pixels; what comes in at an edge repeats the edge.

    Args:
        pictures: [B, height, width, ...].
        shifts: int64 [B, 2]: pixel (y, x) shows what was at (y + first, x + second).
    """
    planes = pictures.movedim(-1, 1).contiguous()  # [B, S, height, width, ...]: as they are kept
    batch, stack, height, width = planes.shape[:4]
    shifts = shifts.to(pictures.device)
    from_y = _moved(height, shifts[:, 0])  # [B, height]
    from_x = _moved(width, shifts[:, 1])  # [B, width]
    first = torch.arange(batch * stack, device=pictures.device).view(batch, stack, 1) * height
    rows = planes.view(batch * stack * height, -1).index_select(
        0, (first + from_y[:, None]).flatten()
    )
    numbers = rows.shape[1] // width  # of a pixel
    columns = (
        from_x[:, :, None] * numbers + torch.arange(numbers, device=pictures.device)
    ).flatten(1)
    index = columns[:, None].expand(-1, stack * height, -1)  # [B, S height, width numbers]
    return rows.view(index.shape).gather(2, index).view(planes.shape).movedim(1, -1)


def _moved(size: int, shifts: Tensor) -> Tensor:
    """The places whose values so many places show, int64 [B, size], for shifts [B]."""
    places = torch.arange(size, device=shifts.device)
    return (places + shifts[:, None]).clamp(0, size - 1)
