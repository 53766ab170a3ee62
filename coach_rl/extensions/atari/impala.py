"""The residual network of IMPALA for pictures, in place of the three convolutions."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.core.errors import SpaceError

PICTURE_AXES = 3


class ImpalaTorso(nn.Module):
    """Features of pictures by fifteen convolutions (Espeholt et al. 2018, arXiv:1802.01561).

    Figure 3, right, without its recurrent layer: a convolution, a maximum over 3 x 3 pixels at
    every other one, and two residual blocks for each number of channels; then a dense layer.

    Args:
        space: Observations with one key, bytes [height, width, channels].
        channels: Channels of each section.
        features: Size of the dense layer.

    Raises:
        SpaceError: The observations are no single picture.
    """

    def __init__(
        self,
        space: spaces.Dict,
        channels: tuple[int, ...] = (16, 32, 32),
        features: int = 512,
    ) -> None:
        super().__init__()
        (self.key, *others) = space.spaces
        shown = space[self.key]
        if others or len(shown.shape or ()) != PICTURE_AXES or shown.dtype != np.uint8:
            raise SpaceError(
                "ImpalaTorso takes one observation, bytes of shape [height, width, channels], got "
                f"{space}; name its key by ModuleParameters.keys"
            )
        assert shown.shape is not None
        height, width, inputs = shown.shape
        sections: list[nn.Module] = []
        for outputs in channels:
            sections += [
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.MaxPool2d(3, stride=2, padding=1),
                ResidualBlock(outputs),
                ResidualBlock(outputs),
            ]
            inputs = outputs
            height = (height + 1) // 2
            width = (width + 1) // 2
        self.sections = nn.Sequential(*sections, nn.ReLU(), nn.Flatten())
        self.dense = nn.Linear(inputs * height * width, features)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Features [B, F] of pictures uint8 [B, height, width, channels]."""
        pixels = observation[self.key].permute(0, 3, 1, 2).to(torch.float32) / 255
        return torch.relu(self.dense(self.sections(pixels)))


class ResidualBlock(nn.Module):
    """Two convolutions whose result is added to their input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, values: Tensor) -> Tensor:
        """[B, channels, height, width], the same shape."""
        changed: Tensor = self.second(torch.relu(self.first(torch.relu(values))))
        return values + changed
