"""Drawing actions from a policy's distribution, in numpy, with their log-probabilities.

The acting side's half of `functional.distributions`: the same parameters [R, P], numbers already
drawn as noise, no tensors. The log-probability falls out of the draw, so it costs next to nothing.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from coach_rl.core.records import Array, FloatArray


class Sampler(Protocol):
    """Sampler of actions from one family of distributions."""

    @property
    def noise_size(self) -> int:
        """Number of random numbers that one draw takes."""
        ...

    @property
    def noise_kind(self) -> Literal["normal", "uniform"]:
        """The kind of random numbers that a draw takes."""
        ...

    def draw(self, parameters: FloatArray, noise: FloatArray) -> tuple[Array, FloatArray]:
        """Actions [R, ...] and their log-probabilities [R].

        Args:
            parameters: [R, P].
            noise: [R, noise_size].
        """
        ...

    def greedy(self, parameters: FloatArray) -> tuple[Array, FloatArray]:
        """The most likely actions [R, ...] and their log-probabilities [R]."""
        ...


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
        choices = self._log_probs(parameters)
        actions = []
        for number, log_probs in enumerate(choices):
            cumulative = np.exp(log_probs).cumsum(axis=1)
            below = (cumulative <= noise[:, number : number + 1]).sum(axis=1)
            # The sum may round to less than 1; behind the last likely action lie forbidden ones.
            last = (cumulative < cumulative[:, -1:]).sum(axis=1)
            actions.append(np.minimum(below, last))
        return self._joined(actions, choices)

    def greedy(self, parameters: FloatArray) -> tuple[Array, FloatArray]:
        """The largest logit of each choice."""
        choices = self._log_probs(parameters)
        return self._joined([log_probs.argmax(axis=1) for log_probs in choices], choices)

    def _log_probs(self, parameters: FloatArray) -> list[FloatArray]:
        """Normalised logits of each choice, [R, size] each."""
        choices = []
        begin = 0
        for size in self.sizes:
            logits = parameters[:, begin : begin + size]
            begin += size
            shifted = logits - logits.max(axis=1, keepdims=True)
            choices.append(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
        return choices

    def _joined(self, actions: list[Array], choices: list[FloatArray]) -> tuple[Array, FloatArray]:
        """Actions as the space has them, and the sum of their log-probabilities."""
        log_prob = np.zeros(len(actions[0]), np.float32)
        rows = np.arange(len(log_prob))
        for action, log_probs in zip(actions, choices, strict=True):
            log_prob += log_probs[rows, action]
        return (actions[0] if self.single else np.stack(actions, axis=1)), log_prob
