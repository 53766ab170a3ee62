"""A network from an observation to latents."""

from collections.abc import Mapping
from functools import partial

import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.torso import AnyTorsoParameters, last_layer


class LatentNetwork(nn.Module):
    """A network from one observation key to latents, such as those of goals.

    Args:
        torso: Its hidden layers.
        key: The observation key.
        space: The space of that observation.
        size: Number of latents.
        rng: Draws the initial weights.
    """

    def __init__(
        self,
        torso: AnyTorsoParameters,
        *,
        key: str,
        space: spaces.Space[object],
        size: int,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.key = key
        self.torso = torso.build(spaces.Dict({key: space}), rng)
        self.head = last_layer(
            self.torso, size, partial(linear, rng=rng, gain=1.0, orthogonal=False)
        )

    def forward(self, observation: Mapping[str, Tensor]) -> Tensor:
        """Latents [B, G] of observations [B, ...] each."""
        latents: Tensor = self.head(self.torso({self.key: observation[self.key]}))
        return latents
