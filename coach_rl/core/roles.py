"""Roles that parts of an experiment's parameters take on, by inheriting them.

They let a room change what it must not know: an agent's memory may be described by any class,
and a field of the same name may mean anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Self


class MovableParameters(ABC):
    """Parameters that may request what only some machines support."""

    @abstractmethod
    def moved_to(self, device: str) -> Self:
        """The same for a run that continues elsewhere, without what cannot be done there.

        Args:
            device: Where networks live from now on, e.g. `cpu` or `cuda:0`.
        """

    def check_device(self, device: str) -> None:  # noqa: B027 # most check nothing beforehand
        """Raise `ConfigurationError` where something requested cannot be done on the device."""


class KeepingParameters(ABC):
    """Parameters of a memory that keeps transitions and hands out batches of them."""

    @abstractmethod
    def keeping_nothing(self) -> Self:
        """The same memory without capacity, for an agent that only acts."""


class LearnerParameters(ABC):
    """Parameters of an agent that waits for a number of decisions before it learns."""

    @abstractmethod
    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """Return why the agent would learn nothing in a run, and what to change; None if it learns.

        Args:
            num_envs: Environments in parallel.
            steps: Environment steps of the run, summed over all of them; no level makes more
                decisions.
            heatup: How many of these are heat-up.
        """


class SharedLearnerParameters(ABC):
    """Parameters of an agent that several processes can train, each on its share of a batch."""

    @abstractmethod
    def shared_batches(self) -> Mapping[str, int]:
        """Return the sizes of the batches that are shared out, by the parameter's path."""

    @abstractmethod
    def obstacle_to_sharing(self) -> str | None:
        """Return why these parameters need a whole batch in one process; None if they don't."""


class CodeNamingParameters(ABC):
    """Parameters that hold names of code, which is imported and called when they are built."""

    @abstractmethod
    def code_names(self) -> tuple[str, ...]:
        """Return all of the names, each as `module:name`.

        They may come from another user's run folder, and are checked before anything is built.
        """
