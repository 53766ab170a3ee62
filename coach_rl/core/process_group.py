"""Processes that train one experiment together.

All of them build the same experiment and take the same ticks. Each steps its own share of the
environments and takes the gradient of its own share of each batch; the answers of the environments
are put together, gradients are added up, and everything else is the same in every process. The
first process *leads*: it alone evaluates, logs, saves and decides when to stop, and tells the
others, who *follow*, before each tick what comes next.
"""

from enum import IntEnum
from typing import Any, NamedTuple, Protocol, TypeVar

Value = TypeVar("Value")


class Order(IntEnum):
    """Something the leading process wants of the others."""

    HEATUP = 0
    """Take a tick of heat-up."""
    TRAIN = 1
    """Take a tick of training."""
    STATE = 2
    """Hand over the state of your environments."""
    RUN = 3
    """Note the folder of the run, which comes with it."""
    END = 4
    """Leave: the run is over."""
    RESUME = 5
    """Read the checkpoint, or the run without one, whose path comes with it."""


class Announcement(NamedTuple):
    """An order, as the others receive it."""

    order: Order
    seconds: float
    """The run's own time."""
    text: str
    """Text that comes with it."""


class ProcessGroup(Protocol):
    """The processes of a run, and this process's place among them.

    group.announce(Order.TRAIN)          # in the leading process
    order = group.next_order()           # in the others
    answers = group.gather(answer)       # in all of them, and so is what follows
    group.add_up(gradient)
    """

    @property
    def rank(self) -> int:
        """Number of this process; 0 leads."""
        ...

    @property
    def local_rank(self) -> int:
        """Number of this process among those of its machine."""
        ...

    @property
    def size(self) -> int:
        """Number of processes."""
        ...

    def announce(self, order: Order, *, seconds: float = 0.0, text: str = "") -> None:
        """Tell the others what comes next; nothing happens where this process follows itself."""
        ...

    def next_order(self) -> Announcement:
        """Wait for what the leading process announces."""
        ...

    def gather(self, value: Value) -> list[Value]:
        """Every process's value, by rank."""
        ...

    def add_up(self, numbers: Any) -> None:
        """Replace a tensor by its sum over all processes, the same to the last bit in each."""
        ...


class OneProcess:
    """A run in one process: nobody to tell, nothing to add."""

    rank, local_rank, size = 0, 0, 1

    def announce(self, order: Order, *, seconds: float = 0.0, text: str = "") -> None:
        """Nobody follows."""

    def next_order(self) -> Announcement:
        """Nobody leads."""
        raise AssertionError("a process on its own follows nobody")

    def gather(self, value: Value) -> list[Value]:
        """The value."""
        return [value]

    def add_up(self, numbers: Any) -> None:
        """A sum of one."""


ONE_PROCESS = OneProcess()
