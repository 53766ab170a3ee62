"""Recurrence in a torso: what the network keeps from one observation of an episode to the next.

The hidden state is passed in with the observation and is a function of all observations so far. A
torso steps once where there are as many states as observations, and passes over sequences of L
observations where there are B = S * L observations, ordered by sequence, and S states. Before that
it passes over the observations under `BURN_IN`, without gradients, which renews old states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.hidden_states import NumpyStep, Reset, StatefulLayer
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import HIDDEN_STATE, FloatArray
from coach_rl.extensions.recurrent_layers.sequences import BURN_IN, BURN_IN_MASK
from coach_rl.extensions.recurrent_layers.stage import KIND


@parameter_class
class RecurrentLayerParameters(ABC):
    """Settings of every recurrent layer."""

    size: Positive[int] = 64
    """Numbers in its output, and in its state."""
    reset: Reset = "sub_episode"
    """The start at which the state becomes 0: of each sub-episode, or of each episode alone. The
    two differ in a level that receives goals."""
    skip: bool = False
    """The layer's input is part of its output, so that what follows sees the newest observation
    beside what is remembered."""

    def build(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "Recurrence":
        cell = self.cell(inputs, rng, orthogonal=orthogonal)
        return Recurrence(cell, inputs, reset=self.reset, skip=self.skip)

    @abstractmethod
    def cell(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "Cell":
        """The computation of the layer; arguments as for `StatefulLayerParameters.build`."""


class Cell(nn.Module, ABC):
    """A recurrent layer.

    Args:
        output_size: F, the size of its output.
        state_size: H, the numbers in its state.
    """

    def __init__(self, *, output_size: int, state_size: int) -> None:
        super().__init__()
        self.output_size, self.state_size = output_size, state_size

    @abstractmethod
    def step(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, F] and states [B, H] after inputs [B, I] in states [B, H]."""

    @abstractmethod
    def sequence(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [S, L, F] and the last states [S, H] of inputs [S, L, I]; equal to L steps."""

    def numpy_step(self) -> NumpyStep | None:
        """`step` as a function of numpy arrays that reads the parameters in place.

        Of its own states [R, H]. None: there is none, or the parameters are not on the CPU.
        """
        return None


class Recurrence(StatefulLayer):
    """A recurrent layer with its place in the agent's hidden state.

    Args:
        cell: What it computes.
        inputs: I, the size of its input.
        reset: The start at which its state becomes 0.
        skip: Its input is part of its output.
    """

    STAGE = KIND

    def __init__(self, cell: Cell, inputs: int, *, reset: Reset, skip: bool) -> None:
        super().__init__(
            output_size=cell.output_size + inputs * skip, state_size=cell.state_size, reset=reset
        )
        self.cell = cell
        self.skip = skip

    def numpy_step(self) -> NumpyStep | None:
        step = self.cell.numpy_step()
        if step is None:
            return None

        def stepped(values: FloatArray, states: FloatArray) -> tuple[FloatArray, FloatArray]:
            outputs, state = step(values, states[:, self.place])
            return np.concatenate([outputs, values], axis=1) if self.skip else outputs, state

        return stepped

    def forward(
        self,
        values: Tensor,
        observation: dict[str, Tensor],
        embed: Callable[[dict[str, Tensor]], Tensor],
    ) -> tuple[Tensor, Tensor]:
        state = observation[HIDDEN_STATE][:, self.place]
        if BURN_IN_MASK in observation:
            with torch.no_grad():
                state = self._burnt_in(state, observation, embed)
        if state.shape[0] == values.shape[0]:  # `len` would fix the number in an export
            outputs, state = self.cell.step(values, state)
        else:
            shaped = values.view(len(state), -1, values.shape[1])
            outputs, state = self.cell.sequence(shaped, state)
            outputs = outputs.flatten(0, 1)
        return torch.cat([outputs, values], dim=1) if self.skip else outputs, state

    def _burnt_in(
        self,
        state: Tensor,
        observation: dict[str, Tensor],
        embed: Callable[[dict[str, Tensor]], Tensor],
    ) -> Tensor:
        """The states [S, H] behind the observations to burn in."""
        seen = {
            key.removeprefix(BURN_IN): values
            for key, values in observation.items()
            if key.startswith(BURN_IN)
        }
        embedded = embed(seen)
        steps = embedded.view(len(state), -1, embedded.shape[1]).unbind(dim=1)
        masks = seen["mask"].view(len(state), -1).unbind(dim=1)
        for values, mask in zip(steps, masks, strict=True):
            _, after = self.cell.step(values, state)
            state = torch.where(mask[:, None], after, state)
        return state
