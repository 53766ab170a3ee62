"""Drawing actions from a policy's distribution, in numpy, with their log-probabilities.

The acting side's half of `functional.distributions`: the same parameters [R, P], numbers already
drawn as noise, no tensors. The log-probability falls out of the draw, so it costs next to nothing.
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from coach_rl.core.records import Array, FloatArray

_LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


class Sampler(Protocol):
    """How actions are drawn from one family of distributions."""

    @property
    def noise_size(self) -> int:
        """How many random numbers one draw takes."""
        ...

    @property
    def noise_kind(self) -> Literal["normal", "uniform"]:
        """What kind of random numbers."""
        ...

    def draw(self, parameters: FloatArray, noise: FloatArray) -> tuple[Array, FloatArray]:
        """Actions [R, ...] and their log-probabilities [R].

        Args:
            parameters: [R, P].
            noise: [R, noise_size].
        """
        ...

    def greedy(self, parameters: FloatArray) -> Array:
        """The most likely actions, [R, ...]."""
        ...


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
        """Mean plus deviation times noise."""
        mean, log_std = parameters[:, : self.size], parameters[:, self.size :]
        action = mean + np.exp(log_std) * noise
        log_prob = -(0.5 * noise * noise + log_std).sum(axis=1) - self.size * _LOG_SQRT_TWO_PI
        return action, log_prob

    def greedy(self, parameters: FloatArray) -> Array:
        """The mean."""
        return parameters[:, : self.size]


@dataclass(frozen=True)
class CategoricalSampler:
    """Logits of independent choices in a row; actions int64 [R], or [R, K] for several."""

    sizes: tuple[int, ...]
    """Number of actions of each choice."""
    single: bool
    """One choice whose actions have no axis of their own."""
    noise_kind: Literal["uniform"] = "uniform"

    @property
    def noise_size(self) -> int:
        """One uniform number per choice."""
        return len(self.sizes)

    def draw(self, parameters: FloatArray, noise: FloatArray) -> tuple[Array, FloatArray]:
        """Invert each choice's cumulative distribution at the noise."""
        actions, log_prob = [], np.zeros(len(parameters), np.float32)
        for number, logits in enumerate(self._split(parameters)):
            log_probs = logits - logits.max(axis=1, keepdims=True)
            log_probs -= np.log(np.exp(log_probs).sum(axis=1, keepdims=True))
            cumulative = np.exp(log_probs).cumsum(axis=1)
            below = (cumulative <= noise[:, number : number + 1]).sum(axis=1)
            # The last cumulative value may round to less than 1.
            action = np.minimum(below, logits.shape[1] - 1)
            log_prob += np.take_along_axis(log_probs, action[:, None], axis=1)[:, 0]
            actions.append(action)
        return self._joined(actions), log_prob

    def greedy(self, parameters: FloatArray) -> Array:
        """The largest logit of each choice."""
        return self._joined([logits.argmax(axis=1) for logits in self._split(parameters)])

    def _split(self, parameters: FloatArray) -> list[FloatArray]:
        return np.split(parameters, np.cumsum(self.sizes)[:-1], axis=1)

    def _joined(self, actions: list[Array]) -> Array:
        return actions[0] if self.single else np.stack(actions, axis=1)
