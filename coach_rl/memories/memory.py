"""The interface between an off-policy agent and a memory."""

from typing import Protocol

import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.agents import ALONE, LevelPlace
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import Array, IntArray, Observation, Transition
from coach_rl.core.spaces import Space
from coach_rl.core.state import Stateful
from coach_rl.memories.batches import TransitionBatch


class Memory(Stateful, Protocol):
    """Stores transitions and samples batches of them.

    memory.add(transition)
    if len(memory) >= learning_starts:
        batch = memory.sample(256)
        errors = learn(batch)                                # [B], of whatever sign
        memory.note_errors(batch.position, errors)
    """

    def __len__(self) -> int:
        """Transitions kept."""
        ...

    @property
    def capacity(self) -> int:
        """Transitions it has room for."""
        ...

    @property
    def is_prioritised(self) -> bool:
        """True if `note_errors` changes anything: learners need not compute errors otherwise."""
        ...

    def add(self, transition: Transition) -> None:
        """Store R transitions, replacing the oldest of rows that are full."""
        ...

    def truncate(self, rows: IntArray) -> None:
        """Truncate the open episodes of these rows at their newest transitions."""
        ...

    def sample(self, size: int) -> TransitionBatch:
        """A batch of B = `size` transitions, drawn with replacement from those kept."""
        ...

    def as_shown(self, observation: Observation) -> Observation:
        """Observations as batches contain them: with hindsight, a share has relabelled goals.

        For statistics of what a learner sees. Needs at least one transition; where something is
        changed, this draws from the sampling stream.

        Args:
            observation: Of transitions that were added, [R, ...] each; not written to.
        """
        ...

    def note_errors(self, positions: Tensor, errors: Tensor) -> None:
        """Record the learner's errors of sampled transitions, [B] each."""
        ...

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call, by name."""
        ...

    def clear(self) -> None:
        """Remove all transitions."""
        ...

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """Everything kept by flat path, [N, T, ...] each, time in order; `/mask` [N, T].

        What belongs to the agent is listed under its name: `/agents/<agent>/actions`.
        """
        ...


class MemoryParameters(Protocol):
    """A frozen description of a memory."""

    def build(
        self,
        *,
        observation_space: spaces.Dict,
        action_space: Space,
        num_envs: int,
        device: torch.device,
        seed: int,
        discount: float,
        place: LevelPlace = ALONE,
        output_filter: OutputFilter | None = None,
    ) -> Memory:
        """The memory; ConfigurationError when it can't fit the machine or the spaces.

        Args:
            observation_space: What the agent sees, behind its InputFilter.
            action_space: Where the agent acts.
            num_envs: N, the rows that add to it.
            device: The learner's, where batches go.
            seed: Of the sampling stream.
            discount: Gamma per decision, or per simulator step if the parameters set that.
            place: Where in a stack the agent decides.
            output_filter: What the agent's actions pass on their way out; None: nothing.
        """
        ...
