"""Drawing mixed actions in numpy: the acting side's half of `distribution`."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coach_rl.core.records import Array, FloatArray
from coach_rl.exploration_policies.samplers import LOG_SQRT_TWO_PI
from coach_rl.exploration_policies.sampling import CategoricalSampler


@dataclass(frozen=True)
class MixedSampler:
    """Logits of choices, then means and log standard deviations; actions float32 [R, K + G]."""

    sizes: tuple[int, ...]
    """Number of actions of each of the K choices."""
    numbers: tuple[tuple[int, tuple[int, int] | None], ...]
    """Groups of the G numbers: their size, and the choice and the action that they are arguments
    of; None: they count always."""
    noise_kind: Literal["uniform"] = "uniform"

    @property
    def noise_size(self) -> int:
        """One uniform number per choice, two per pair of numbers."""
        return len(self.sizes) + 2 * self._pairs

    @property
    def _pairs(self) -> int:
        return (self._count + 1) // 2

    @property
    def _count(self) -> int:
        """G."""
        return sum(size for size, _ in self.numbers)

    @property
    def _choices(self) -> CategoricalSampler:
        return CategoricalSampler(self.sizes, single=False)

    def draw(self, parameters: FloatArray, noise: FloatArray) -> tuple[Array, FloatArray]:
        """Choices as from their own sampler; numbers by the transform of Box and Muller."""
        logits, mean, log_std = self._split(parameters)
        uniform = noise[:, len(self.sizes) :]
        radius = np.sqrt(-2 * np.log1p(-uniform[:, : self._pairs]))
        angle = np.float32(2 * np.pi) * uniform[:, self._pairs :]
        normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        normal = normal[:, : self._count]
        chosen, log_prob = self._choices.draw(logits, noise)
        return self._joined(chosen, mean + np.exp(log_std) * normal, log_prob, log_std, normal)

    def greedy(self, parameters: FloatArray) -> tuple[Array, FloatArray]:
        """The largest logit of each choice, and the means."""
        logits, mean, log_std = self._split(parameters)
        chosen, log_prob = self._choices.greedy(logits)
        return self._joined(chosen, mean, log_prob, log_std, np.zeros_like(mean))

    def _split(self, parameters: FloatArray) -> list[FloatArray]:
        """Logits, means and log standard deviations."""
        logits = sum(self.sizes)
        return np.split(parameters, [logits, logits + self._count], axis=1)

    def _joined(
        self,
        chosen: Array,
        values: FloatArray,
        log_prob: FloatArray,
        log_std: FloatArray,
        normal: FloatArray,
    ) -> tuple[Array, FloatArray]:
        """Actions, and their log-probabilities from those of the choices."""
        density = -(0.5 * normal * normal + log_std + np.float32(LOG_SQRT_TWO_PI))  # [R, G]
        begin = 0
        for size, argument_of in self.numbers:
            term = density[:, begin : begin + size].sum(axis=1)
            if argument_of is not None:
                choice, value = argument_of
                term = term * (chosen[:, choice] == value)
            log_prob = log_prob + term
            begin += size
        return np.concatenate([chosen.astype(np.float32), values], axis=1), log_prob
