"""The order in which PPO learns from the transitions of a rollout."""

from typing import Any, Protocol

import numpy as np
from torch import Tensor

from coach_rl.architectures.gradient_step import Numbers, mapped
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.records import IntArray
from coach_rl.memories.batches import Minibatch, Rollout, RolloutBatch
from coach_rl.memories.rollout_memory import RowGrid


class Judging(Protocol):
    """A network that values observations."""

    def states_after(self, observation: dict[str, Tensor]) -> Tensor:
        """The hidden states [S, H] after observations, of a network that has some."""
        ...


class FlatBatches:
    """Minibatches of transitions, each by itself.

    Args:
        settings: `PPOAlgorithmParameters`.
        agent: The agent's name, for messages.
    """

    padding: int = 0
    """Slots of the memory behind a whole rollout that never hold a transition."""

    def __init__(self, settings: Any, agent: str) -> None:
        self.settings = settings
        self.agent = agent

    def observed(self, rollout: Rollout) -> Rollout:
        """The rollout as networks observe it."""
        return rollout

    def order(self, rollout: Rollout, grid: RowGrid, count: int) -> IntArray:
        """Positions of transitions: each of them, [C], or [S, W] of what is learned together.

        Args:
            rollout: As networks observe it.
            grid: The order of each row's transitions.
            count: C, how many there are.
        """
        return np.arange(count)

    def size(self, order: IntArray, count: int) -> int:
        """The number of entries of an order in a minibatch, of a rollout of C transitions.

        C may differ from round to round, sizes of minibatches may not.
        """
        settings = self.settings
        return int(min(settings.minibatch, settings.rollout.count))

    def valid(self, rollout: Rollout, count: int) -> Tensor | None:
        """True for slots that hold a transition, bool [capacity]; None where all of a batch do."""
        return None

    def after(self, rollout: Rollout, positions: Tensor, model: Judging) -> dict[str, Tensor]:
        """The observations of a network after transitions [K], [K, ...] each."""
        return {key: values[positions] for key, values in rollout.next_observation.items()}

    def step(self, engine: UpdateEngine[RolloutBatch], batch: Minibatch) -> Numbers:
        """A gradient step from a minibatch; its metrics."""
        return engine.step(batch.rollout, batch.positions)

    def gathered(self, batch: Minibatch) -> RolloutBatch:
        """The transitions of a minibatch, [B, ...] each."""
        return gathered(batch.rollout, batch.positions)


def gathered(rollout: RolloutBatch, positions: Tensor) -> RolloutBatch:
    """The transitions at some positions [...] of a rollout, [B, ...] each."""
    flat = positions.flatten()
    return mapped(lambda column: column[flat], rollout)
