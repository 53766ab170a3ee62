"""Torsos of other kinds than ours."""

from typing import Any, Protocol

import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.observation_normaliser import ObservationNormaliser


class OtherTorso(nn.Module):
    """A torso of another kind, which acts in torch and has no hidden state."""

    name: str
    """Its name in messages."""
    output_size: int
    """F, the number of its features."""
    last_layer: bool
    """Features go through a linear layer to the network's outputs; False: they are the outputs."""

    def advance(self, observation: dict[str, Tensor]) -> tuple[Tensor, None]:
        """The result of `forward`; there is no hidden state."""
        return self(observation), None


class OtherTorsoParameters(Protocol):
    """A frozen description of a torso of another kind."""

    @property
    def orthogonal(self) -> bool:
        """True if last layers behind it begin orthogonal."""
        ...

    @property
    def last_layer(self) -> bool:
        """The same of the torso."""
        ...

    def build(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> OtherTorso:
        """The torso for observations of a space."""
        ...

    def critics(self, *surroundings: Any) -> nn.Module:
        """Critics of actions too, made and called like `continuous_control.DenseCritics`."""
        ...
