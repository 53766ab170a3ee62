"""The parts of an off-policy algorithm: networks, their gradient step, and how they act.

`OffPolicyAgent` decides when to learn and keeps the memory; a learner knows nothing of either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.acting_policy import AnyActingPolicy
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.runtime import Runtime
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import Space
from coach_rl.core.state import Stateful
from coach_rl.memories.batches import TransitionBatch

REPAID_AFTER = 15_000
"""Updates after which compiling has repaid itself: two variants of 15 s at 2 to 3 ms saved each."""


class Learner(Protocol):
    """Networks and losses of an off-policy algorithm."""

    @property
    def engine(self) -> UpdateEngine[Any]:
        """Makes the gradient steps, from whatever the losses take, and has their metrics."""
        ...

    @property
    def acting(self) -> AnyActingPolicy:
        """The acting policy of its networks."""
        ...

    @property
    def networks(self) -> Mapping[str, NetworkWrapper]:
        """Every network by name, for saving and describing."""
        ...

    @property
    def learning_rates(self) -> Mapping[str, float]:
        """Learning rates by the name of the engine's scalar, before the schedule."""
        ...

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        """One gradient step; the losses' metrics of each sample, `td_error` [B] among them."""
        ...


class Guide(Stateful, Protocol):
    """Terms of an actor's loss beside the critic's value of its actions."""

    def prepared(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with what `loss` reads from its extras."""
        ...

    def loss(self, action: Tensor, batch: TransitionBatch) -> tuple[Tensor, Numbers]:
        """The terms for the actor's actions [B, A] in a prepared batch, and metrics; pure."""
        ...

    def learn(self) -> None:
        """Learn, if that is due; called before gradient steps."""
        ...

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        ...


@dataclass(frozen=True, kw_only=True)
class LearnerContext:
    """Context known only when a learner is built."""

    observation_space: spaces.Dict
    """The observation space behind the agent's InputFilter."""
    action_space: Space
    """The agent's action space, before its OutputFilter."""
    normaliser: ObservationNormaliser | None
    """Normalises inside the networks; None where observations are left as they are."""
    weights_rng: torch.Generator
    """Draws initial weights."""
    noise_rng: torch.Generator
    """Draws the noise of losses; saved by the agent."""
    planned_updates: int
    """Gradient steps it is sure to make in the whole run."""
    owner: str
    """Name of the networks' owner, for errors; see `LevelPlace.owner`."""
    runtime: Runtime
    """The agent's."""
    guide: Guide | None
    """Terms of the actor's loss beside the critic's value; None: none."""

    @property
    def device(self) -> torch.device:
        """Device of the networks."""
        return torch.device(self.runtime.device)

    @property
    def seed(self) -> int:
        """The agent's seed."""
        return self.runtime.seed

    @property
    def signals(self) -> Signals:
        """Channel for numbers that the learner shows in the logs."""
        return self.runtime.signals

    @property
    def network_arguments(
        self,
    ) -> tuple[spaces.Dict, Space, torch.Generator, ObservationNormaliser | None]:
        """The arguments of the networks' constructors, in order."""
        return self.observation_space, self.action_space, self.weights_rng, self.normaliser

    def noise(self, *shape: int) -> Tensor:
        """Standard normal numbers for the losses, the same on every device."""
        return torch.randn(shape, generator=self.noise_rng).to(self.device, non_blocking=True)


MakeLearner: TypeAlias = Callable[[LearnerContext], Learner]
