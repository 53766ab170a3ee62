"""The encoder of pictures of DrQ, which the critics alone train (Kostrikov et al. 2020).

    pictures = PictureTorsoParameters(middleware=(1024, 1024))
    SACAgentParameters(
        actor=ActorParameters(torso=replace(pictures, convolutions_of="critics")),
        critic=CriticParameters(torso=pictures),
        ...
    )

It is that of SAC+AE (Yarats et al. 2019, arXiv:1910.01741). Differences: dense layers begin with
gain sqrt(2), as all of this engine's.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.continuous_control import BorrowedLayers, CriticEnsemble
from coach_rl.architectures.initial_weights import HIDDEN_GAIN, convolution, linear
from coach_rl.architectures.layers import Activate, Activation
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.torso import ObservationEmbedder, TorsoParameters, selected
from coach_rl.core.errors import ConfigurationError, SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.extensions.images.convolutions import MOST_CHANNELS_FIRST

LAYERS = ((32, 3, 2), (32, 3, 1), (32, 3, 1), (32, 3, 1))
"""(channels, kernel, stride) of the convolutions: 32 channels of 35 x 35 from 84 x 84 pixels."""
PICTURE_AXES = (3, 4)
"""Numbers of axes of a picture, and of a stack of them along the last axis."""


@parameter_class
class PictureTorsoParameters(TorsoParameters):
    """A torso for pictures: convolutions, and few features with layer normalisation and tanh.

    Pictures are bytes [height, width, channels], or stacks of them along a further axis. Other
    observations are embedded as in `TorsoParameters`.
    """

    convolutions: tuple[tuple[Positive[int], Positive[int], Positive[int]], ...] = LAYERS
    """(channels, kernel, stride) of each convolution, behind which is a ReLU."""
    features: Positive[int] = 50
    """Features of a picture."""
    convolutions_of: Literal["own", "critics"] = "own"
    """own: it trains its convolutions. critics: for actors; the convolutions are those of the
    critics, whose loss alone trains them, and the features behind them are the actor's own."""
    middleware: tuple[Positive[int], ...] = (1024, 1024)
    """Dense layers behind the features."""
    activation: Activation = "relu"
    """Behind convolutions and dense layers; behind the features it is tanh."""

    def __post_init__(self) -> None:
        require(
            self.recurrence is None,
            "PictureTorsoParameters.recurrence must be None: a hidden state would depend on "
            f"features that are detached; got {self.recurrence}",
        )

    def embed(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> "PictureEmbedder":
        """The convolutions and features of pictures, and the embedders of other observations."""
        return PictureEmbedder(self, space, rng, normaliser)


class PictureEmbedder(ObservationEmbedder):
    """The first part of a `PictureTorsoParameters`: features of pictures behind other observations.

    Raises:
        SpaceError: A picture is too small for the convolutions, or there is none.
    """

    def __init__(
        self,
        params: PictureTorsoParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        shown = selected(space, params.keys).spaces
        pictures = {key: part for key, part in shown.items() if is_picture(part)}
        if not pictures:
            raise SpaceError(
                "PictureTorsoParameters needs a picture among the observations, bytes [height, "
                f"width, channels] or a stack of those, got {' '.join(str(space).split())}; use "
                "TorsoParameters for others"
            )
        others = {key: part for key, part in shown.items() if key not in pictures}
        super().__init__(replace(params, keys=None), spaces.Dict(others), rng, normaliser)
        for key, part in pictures.items():
            require_channels_last(key, part)
            self.keys.append(key)
            self.embedders.append(_layers(key, part, params, rng))
            self.output_size += params.features


class Pixels(nn.Module):
    """Pictures [B, height, width, ...] of bytes to float32 [B, channels, height, width]."""

    def forward(self, values: Tensor) -> Tensor:
        """The channels of older pictures of a stack come first; all are divided by 255."""
        if values.ndim > PICTURE_AXES[0] + 1:  # B, height, width, channels, pictures
            values = values.transpose(3, 4).flatten(3)
        # In memory the channels stay last, with which convolutions are faster.
        return values.permute(0, 3, 1, 2) / 255


class Convolutions(nn.Sequential):
    """Convolutions with an activation each, and their outputs in a row: [B, features]."""

    def __init__(self, channels: int, params: PictureTorsoParameters, rng: torch.Generator) -> None:
        super().__init__()
        for outputs, kernel, stride in params.convolutions:
            layer = convolution(
                channels,
                outputs,
                kernel=kernel,
                stride=stride,
                rng=rng,
                gain=HIDDEN_GAIN,
                orthogonal=params.orthogonal,
            )
            self.extend([layer, Activate(params.activation)])
            channels = outputs
        self.append(nn.Flatten())


class BorrowedConvolutions(BorrowedLayers):
    """The critics' convolutions of an observation key; no gradient goes through them."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self._found: tuple[nn.Module, ...] = ()
        """The convolutions, in a tuple that torch does not count as a part of this module."""

    def borrow(self, critics: CriticEnsemble) -> None:
        embedder = critics.embedder
        if embedder is not None and self.key in embedder.keys:
            layers = embedder.embedders[embedder.keys.index(self.key)]
            found = (each for each in layers.modules() if isinstance(each, Convolutions))
            self._found = tuple(found)
        if not self._found:
            raise ConfigurationError(
                "an actor's PictureTorsoParameters with convolutions_of='critics' needs critics "
                f"with convolutions of their own for '{self.key}'; give the critics a "
                "PictureTorsoParameters with convolutions_of='own'"
            )

    def forward(self, pixels: Tensor) -> Tensor:
        """Outputs of the critics' convolutions as they are now, detached: [B, features]."""
        if not self._found:
            raise ConfigurationError(
                "PictureTorsoParameters.convolutions_of='critics' is for actors beside critics, "
                "got a network without; set it to 'own'"
            )
        (convolutions,) = self._found
        with torch.no_grad():
            outputs: Tensor = convolutions(pixels)
        return outputs.detach()


def is_picture(space: Space) -> bool:
    """Return whether observations are pictures or stacks of pictures."""
    shape = space.shape or ()
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(shape) in PICTURE_AXES


def require_channels_last(key: str, space: Space) -> None:
    """Raise `SpaceError` for a picture that seems to have its channels first."""
    channels, *others = (space.shape or ())[: PICTURE_AXES[0]]
    if channels <= MOST_CHANNELS_FIRST < min(others):
        raise SpaceError(
            f"picture '{key}' of {space.shape} seems to have its channels first, and has to be "
            "[height, width, channels], or a stack of those along a further axis; move the axis in "
            "a wrapper of the environment"
        )


def _layers(
    key: str, space: Space, params: PictureTorsoParameters, rng: torch.Generator
) -> nn.Sequential:
    """The layers from a picture to its features."""
    size = _feature_maps(key, space, params.convolutions)
    convolutions: nn.Module
    if params.convolutions_of == "own":
        convolutions = Convolutions(_channels(space), params, rng)
    else:
        convolutions = BorrowedConvolutions(key)
    dense = linear(size, params.features, rng=rng, gain=HIDDEN_GAIN, orthogonal=params.orthogonal)
    return nn.Sequential(
        Pixels(), convolutions, dense, nn.LayerNorm(params.features), Activate("tanh")
    )


def _channels(space: Space) -> int:
    """Channels of a picture; of a stack all of its pictures together."""
    assert space.shape is not None
    return int(np.prod(space.shape[2:]))


def _feature_maps(key: str, space: Space, layers: tuple[tuple[int, int, int], ...]) -> int:
    """The number of outputs of the convolutions of a picture."""
    assert space.shape is not None
    sides = list(space.shape[:2])
    channels = _channels(space)
    for outputs, kernel, stride in layers:
        if min(sides) < kernel:
            raise SpaceError(
                f"picture '{key}' of {space.shape} is too small for the convolutions {layers}; set "
                "PictureTorsoParameters.convolutions to fewer, or show a larger picture"
            )
        sides = [(side - kernel) // stride + 1 for side in sides]
        channels = outputs
    return channels * sides[0] * sides[1]
