"""Recurrence in a torso: what the network keeps from one observation of an episode to the next.

The hidden state is passed in with the observation and is a function of all observations so far. A
torso steps once where there are as many states as observations, and passes over sequences of L
observations where there are B = S * L observations, ordered by sequence, and S states. Before that
it passes over the observations under `BURN_IN`, without gradients, which renews old states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, Protocol

import torch
from annotated_types import Ge
from torch import Tensor, nn

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import BURN_IN, BURN_IN_MASK, HIDDEN_STATE, FloatArray

Reset = Literal["sub_episode", "episode"]


NumpyStep = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Outputs [R, F] and states [R, H] after inputs [R, I] in states [R, H]."""


class RecurrenceParameters(Protocol):
    """A frozen description of a recurrent layer: `GRU`, `LSTM`, `MinGRU`, `Attention`."""

    @property
    def reset(self) -> Reset:
        """The start at which the state becomes 0: of each sub-episode, or of each episode."""
        ...

    @property
    def skip(self) -> bool:
        """True if the layer's input is part of its output."""
        ...

    def build(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "Cell":
        """The layer for that many inputs.

        Args:
            inputs: Size of its input.
            rng: Where the weights are drawn from.
            orthogonal: Orthogonal weights and zero biases; else PyTorch's default.
        """
        ...


@parameter_class
class RecurrentLayerParameters:
    """Settings of every recurrent layer."""

    size: Positive[int] = 64
    """Numbers in its output, and in its state."""
    reset: Reset = "sub_episode"
    """The start at which the state becomes 0: of each sub-episode, or of each episode alone. The
    two differ in a level that receives goals."""
    skip: bool = False
    """The layer's input is part of its output, so that what follows sees the newest observation
    beside what is remembered."""


@parameter_class
class GatedLayerParameters(RecurrentLayerParameters):
    """Settings of layers whose gates decide what they keep."""

    CELL: "ClassVar[Callable[..., Cell]]"
    """Class of the layer."""

    span: Annotated[int, Ge(3)] | None = None
    """Longest time, in decisions, over which the initial gates keep a state: chrono initialisation
    (Tallec & Ollivier 2018, arXiv:1804.11188). None: gates start half open, which keeps it for two
    or three."""

    def build(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "Cell":
        return self.CELL(inputs, self.size, rng, orthogonal=orthogonal, span=self.span)


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

    def numpy_step(self) -> "NumpyStep | None":
        """`step` as a function of numpy arrays that reads the parameters in place.

        Acting evaluates a few rows at a time, where it takes a third of the time. None: there is
        none, or the parameters are not on the CPU.
        """
        return None


class Recurrence(nn.Module):
    """The recurrent layer of a torso, with its place in the agent's hidden state.

    Args:
        params: Which layer it is.
        inputs: I, the size of its input.
        rng: Where the weights are drawn from.
        orthogonal: Orthogonal weights and zero biases; else PyTorch's default.
    """

    def __init__(
        self, params: RecurrenceParameters, inputs: int, rng: torch.Generator, *, orthogonal: bool
    ) -> None:
        super().__init__()
        self.cell, self.reset = params.build(inputs, rng, orthogonal=orthogonal), params.reset
        self.skip = params.skip
        self.output_size = self.cell.output_size + inputs * params.skip
        self.begin = 0
        """Index of its first number in the agent's hidden state."""

    @property
    def place(self) -> slice:
        """The columns of its state in the agent's hidden state."""
        return slice(self.begin, self.begin + self.cell.state_size)

    def forward(
        self,
        values: Tensor,
        observation: dict[str, Tensor],
        embed: Callable[[dict[str, Tensor]], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, F], and the states [S, H] after the last observation of each sequence.

        Args:
            values: The embedded observations, [B, I].
            observation: With the hidden states [S, *], and observations to burn in.
            embed: Embeds observations.
        """
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
