"""Networks for images: convolutions, and the names of some that others have published."""

from bisect import bisect

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.initial_weights import HIDDEN_GAIN, convolution
from coach_rl.architectures.layers import Activate
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.errors import SpaceError

Convolutions = tuple[tuple[int, int, int], ...]


CONVOLUTIONS: dict[str, Convolutions] = {
    "shallow": ((32, 3, 1),),
    "small": ((32, 3, 2), (64, 3, 2), (64, 3, 1)),
    "medium": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "deep": ((32, 5, 2), (32, 3, 1), (64, 3, 2), (64, 3, 1), (128, 3, 2), (128, 3, 1)),
}
"""Image embedders, (channels, kernel, stride) per layer; medium is that of Mnih et al. 2015."""


LEAST_SIDES = {"medium": (36,), "small": (3, 7, 15)}
"""Pixels a side that images need for medium, and for the first one, two and three of small."""


AXES = 3
"""Axes of an image; a stack of them has a further one."""
MOST_CHANNELS_FIRST = 4
"""Channels up to which an image whose first axis is the shortest counts as channels-first."""


class ImageScale(nn.Module):
    """Images [B, ...] to float32 [B, channels, height, width]; divided by 255 if `is_scaled`.

    Of stacks along a further axis, the channels of older images come first.

    Args:
        channels_first: The axes of the input are already in this order.
        is_scaled: Divide by 255.
    """

    def __init__(self, *, channels_first: bool, is_scaled: bool) -> None:
        super().__init__()
        self.channels_first = channels_first
        self.is_scaled = is_scaled

    def forward(self, values: Tensor) -> Tensor:
        if values.ndim > AXES + 1:
            ahead = (0, 4, 1, 2, 3) if self.channels_first else (0, 4, 3, 1, 2)
            values = values.permute(ahead).flatten(1, 2)
        elif not self.channels_first:
            values = values.permute(0, 3, 1, 2)
        if not self.is_scaled:
            return values.to(torch.float32)
        # In place, as a second new tensor takes longer than the division.
        return values.to(torch.float32, copy=True).div_(255)


def image_encoder(
    space: spaces.Box, key: str, params: TorsoParameters, rng: torch.Generator, *, is_scaled: bool
) -> tuple[nn.Module, int]:
    """Convolutions for an image, and the number of their outputs.

    Args:
        space: The image.
        key: Its observation key, for messages.
        params: Of the torso.
        rng: Where the weights are drawn from.
        is_scaled: Whether to divide by 255.
    """
    is_bytes = space.dtype == np.uint8
    channels_first = params.images == "channels_first"
    first, *others = space.shape[:AXES]
    if params.images == "auto" and not is_bytes:
        raise SpaceError(
            f"observation '{key}' of {space.shape} {space.dtype} may be an image or not; set "
            "TorsoParameters.images to channels_last, channels_first or flat"
        )
    if params.images == "auto" and first <= MOST_CHANNELS_FIRST < min(others):
        raise SpaceError(
            f"image '{key}' of {space.shape} seems to have its channels first; set "
            "TorsoParameters.images to channels_first (or to channels_last, if it has not)"
        )
    height, width, channels = (*others, first) if channels_first else space.shape[:AXES]
    channels *= int(np.prod(space.shape[AXES:]))
    scale = ImageScale(channels_first=channels_first, is_scaled=is_bytes or is_scaled)
    layers: list[nn.Module] = [scale]
    for outputs, kernel, stride in convolution_layers(params.convolutions, min(height, width)):
        if min(height, width) < kernel:
            raise SpaceError(
                f"image '{key}' of {space.shape} is too small for the convolutions "
                f"{params.convolutions!r}; set TorsoParameters.convolutions to auto, or rescale it "
                "with ObservationRescaleToSizeFilter"
            )
        layer = convolution(
            channels,
            outputs,
            kernel=kernel,
            stride=stride,
            rng=rng,
            gain=HIDDEN_GAIN,
            orthogonal=params.orthogonal,
        )
        layers += [layer, Activate(params.activation)]
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        channels = outputs
    return nn.Sequential(*layers, nn.Flatten()), channels * height * width


def convolution_layers(named: str | Convolutions, side: int) -> Convolutions:
    """(channels, kernel, stride) of each convolution of images with so many pixels a side."""
    if named == "auto" and side < LEAST_SIDES["medium"][0]:
        return CONVOLUTIONS["small"][: bisect(LEAST_SIDES["small"], side)]
    if isinstance(named, str):
        return CONVOLUTIONS["medium" if named == "auto" else named]
    return named
