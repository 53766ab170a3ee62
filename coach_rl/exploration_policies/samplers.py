"""The sampler of a space's actions, and that of Boxes."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.records import Array, FloatArray
from coach_rl.core.spaces import PolicySpace, Space
from coach_rl.exploration_policies.sampling import CategoricalSampler, Sampler

LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class GaussianSampler:
    """Independent normals: means and log standard deviations [R, 2A]; actions [R, A]."""

    size: int
    noise_kind: Literal["normal"] = "normal"

    @property
    def noise_size(self) -> int:
        """One standard normal per element."""
        return self.size

    def draw(self, parameters: FloatArray, noise: FloatArray) -> tuple[Array, FloatArray]:
        """Mean plus standard deviation times noise."""
        mean = parameters[:, : self.size]
        log_std = parameters[:, self.size :]
        action = mean + np.exp(log_std) * noise
        log_prob = -(0.5 * noise * noise + log_std).sum(axis=1) - self.size * LOG_SQRT_TWO_PI
        return action, log_prob

    def greedy(self, parameters: FloatArray) -> tuple[Array, FloatArray]:
        """The mean."""
        mean = parameters[:, : self.size]
        log_std = parameters[:, self.size :]
        return mean.copy(), -log_std.sum(axis=1) - self.size * LOG_SQRT_TWO_PI


def sampler_for(space: Space) -> Sampler:
    """Return the sampler of a space's actions; `distribution_for` has accepted the space."""
    match space:
        case Discrete() | MultiDiscrete():
            return CategoricalSampler(sizes=choice_sizes(space), single=isinstance(space, Discrete))
        case PolicySpace():
            own: Sampler = space.sampler
            return own
    return GaussianSampler(size=int(np.prod(space.shape or (1,))))
