"""Layers of a torso that have a hidden state, which an agent keeps between decisions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import FloatArray

Reset = Literal["sub_episode", "episode"]
NumpyStep = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""Outputs [R, F] and states [R, H] after inputs [R, I] in the agent's hidden states [R, *]."""


class StatefulLayer(nn.Module, ABC):
    """A layer behind a torso's embedder whose outputs depend on earlier observations as well.

    Args:
        output_size: F, the size of its output.
        state_size: H, the numbers in its state.
        reset: The start at which the state becomes 0.
    """

    STAGE: ClassVar[Any]
    """Kind of stage by which agents keep the states of their networks: a `StageKind`."""

    def __init__(self, *, output_size: int, state_size: int, reset: Reset) -> None:
        super().__init__()
        self.output_size = output_size
        self.state_size = state_size
        self.reset = reset
        self.begin = 0
        """Index of its first number in the agent's hidden state."""

    @property
    def place(self) -> slice:
        """The columns of its state in the agent's hidden state."""
        return slice(self.begin, self.begin + self.state_size)

    @abstractmethod
    def forward(
        self,
        values: Tensor,
        observation: dict[str, Tensor],
        embed: Callable[[dict[str, Tensor]], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, F], and the states [S, H] after the last observation of each sequence.

        Args:
            values: The embedded observations, [B, I].
            observation: With the agent's hidden states [S, *].
            embed: Embeds observations.
        """

    def numpy_step(self) -> NumpyStep | None:
        """One step as a function of numpy arrays that reads the parameters in place.

        Acting evaluates a few rows at a time, where it takes a third of the time. None: there is
        none, or the parameters are not on the CPU.
        """
        return None


class StatefulLayerParameters(Protocol):
    """A frozen description of a layer with a hidden state."""

    def build(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> StatefulLayer:
        """The layer for that many inputs.

        Args:
            inputs: I, the size of its input.
            rng: Where the weights are drawn from.
            orthogonal: Orthogonal weights and zero biases; else PyTorch's default.
        """
        ...


def require_memoryless(networks: Iterable[nn.Module], what: str) -> None:
    """Raise `ConfigurationError` if any of the networks has a hidden state.

    Args:
        networks: Networks that are shown single observations.
        what: Beginning of the message: who judges them.
    """
    if stateful_layers(networks):
        raise ConfigurationError(
            f"{what} judges observations out of their order, which no recurrent network can; leave "
            "out its TorsoParameters.recurrence"
        )


def stateful_layers(networks: Iterable[nn.Module]) -> list[StatefulLayer]:
    """The layers of networks that have a hidden state."""
    modules = chain.from_iterable(map(nn.Module.modules, networks))
    return [module for module in modules if isinstance(module, StatefulLayer)]
