"""Observations brought to mean 0 and standard deviation 1 inside the networks."""

import warnings

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.core.errors import CoachWarning
from coach_rl.core.records import Observation
from coach_rl.core.running_statistics import ROUNDING, RunningStatistics
from coach_rl.core.saved import Saved, SavedAttribute

EPSILON = 1e-8
"""Added to the variance before its root is taken."""
SMALLEST_STD = 0.01
"""Smallest standard deviation to divide by, as in OpenAI Baselines' HER: the jitter of a constant
is not worth the whole range of a network's input.
"""
ENOUGH = 16
"""Observations after which their spread is first compared with the rounding of float32."""


class ObservationNormaliser(Saved):
    """Statistics of an agent's observations, shared by all its networks.

    The networks read `mean` and `scale` wherever they run, acting, learning or as a target, so an
    observation means the same everywhere. What a memory keeps stays raw. No standard deviation
    counts as less than `SMALLEST_STD`. Networks compute in float32: a warning names each 64-bit key
    whose spread that would lose beside its mean.

    Args:
        space: What the networks observe; keys of float Boxes are normalised, others are not.
        clip: Largest size of a normalised number.
        device: Where the networks live.
    """

    SAVED = (SavedAttribute("_statistics", inline=True),)

    def __init__(self, space: spaces.Dict, *, clip: float, device: torch.device) -> None:
        self.clip = clip
        self.mean: dict[str, Tensor] = {}
        """Mean by observation key, float32."""
        self.scale: dict[str, Tensor] = {}
        """Scale by observation key, 1 / standard deviation, 100 at most, float32."""
        self._statistics: dict[str, RunningStatistics] = {}
        self._unwarned: set[str] = set()
        for key, part in space.spaces.items():
            if isinstance(part, spaces.Box) and np.issubdtype(part.dtype, np.floating):
                self._statistics[key] = RunningStatistics(part.shape)
                self.mean[key] = torch.zeros(part.shape, device=device)
                self.scale[key] = torch.ones(part.shape, device=device)
                if part.dtype == np.float64:
                    self._unwarned.add(key)

    def update(self, observation: Observation) -> None:
        """Update the statistics with observations [R, ...] each."""
        for key, statistics in self._statistics.items():
            before = statistics.count
            statistics.update(observation[key])
            # At 16, 32, 64, ... observations: often enough, and free in between.
            if key in self._unwarned and statistics.count.bit_length() > before.bit_length():
                self._warn_of_rounding(key, statistics)
        self._write()

    def note_loaded(self) -> None:
        """Show the networks the loaded statistics."""
        self._write()

    def _warn_of_rounding(self, key: str, statistics: RunningStatistics) -> None:
        """Warn once of an element that varies, and by less than float32 can show at its mean."""
        std = np.sqrt(statistics.variance).ravel()
        size = np.abs(statistics.mean).ravel()
        lost = (std < 1e-6 * size) & (std > ROUNDING * size)
        if statistics.count < ENOUGH or not lost.any():
            return
        self._unwarned.remove(key)
        element = int(lost.argmax())
        warnings.warn(
            f"element {element} of observation '{key}' varies by {std[element]:g} around "
            f"{statistics.mean.ravel()[element]:g}, which normalise_observations loses in float32; "
            "normalise it by a filter instead: "
            f"InputFilter(observation={{'{key}': (ObservationNormalizationFilter(),)}})",
            CoachWarning,
            stacklevel=3,
        )

    def _write(self) -> None:
        for key, statistics in self._statistics.items():
            self.mean[key].copy_(torch.from_numpy(statistics.mean))
            scale = statistics.inverse_std(EPSILON)
            np.minimum(scale, 1 / SMALLEST_STD, out=scale)
            self.scale[key].copy_(torch.from_numpy(scale))


class Normalise(nn.Module):
    """One key's observations [B, ...], normalised and clipped."""

    mean: Tensor
    scale: Tensor

    def __init__(self, normaliser: ObservationNormaliser, key: str) -> None:
        super().__init__()
        self.clip = normaliser.clip
        self.register_buffer("mean", normaliser.mean[key], persistent=False)
        self.register_buffer("scale", normaliser.scale[key], persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """Normalise in float32, without changing the shape."""
        normal = (values.to(torch.float32) - self.mean) * self.scale
        return normal.clamp(-self.clip, self.clip)
