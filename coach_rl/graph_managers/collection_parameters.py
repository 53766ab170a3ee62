"""Collection of a run's experience, by its own process or by workers beside it."""

import re
from typing import Literal

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive


@parameter_class
class CollectionParameters:
    """Workers that act and step environments for a run; see docs/scaling.md."""

    workers: NonNegative[int] = 0
    """Processes that collect, each with a block of the environments; 0: the run's own process does.
    """
    on: str = "local"
    """Place of the workers. local: processes of this machine. ray: actors of the Ray cluster that
    is found, or one started on this machine. ray:ADDRESS: actors of that cluster. inline: one after
    the other in the run's own process, to debug them and to compare numbers."""
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    """synchronous: learning sees a tick of all workers at a time, and they act with the newest
    parameters; the numbers don't depend on where workers are. asynchronous: whoever is ready is
    learned from, and workers act while the run learns, with older parameters; only for off-policy
    agents, and another algorithm."""
    ticks: Positive[int] = 32
    """Steps of each environment that a worker makes on one request, at most; fewer in synchronous
    mode where learning is due before."""
    staleness: Positive[int] = 64
    """Ticks of the run that may pass, in asynchronous mode, between sending parameters to a worker
    and learning from what it did with them; twice `ticks` or more."""

    def __post_init__(self) -> None:
        require(
            self.on in ("local", "inline", "ray") or re.fullmatch(r"ray:\S+", self.on) is not None,
            f"collection.on must be local, inline, ray or ray:ADDRESS, got '{self.on}'; other "
            "places make whole runs (--seeds)",
        )
        require(
            self.workers > 0 or self.on == "local",
            f"collection.on is '{self.on}', and there are no workers to be there; give "
            "collection.workers as well (--workers N)",
        )
        require(
            self.mode == "synchronous" or 2 * self.ticks <= self.staleness,
            f"collection.staleness ({self.staleness}) must be twice collection.ticks "
            f"({self.ticks}) or more: a worker makes as many while those before are learned from",
        )
        require(
            self.mode == "synchronous" or self.on != "inline",
            "collection.on='inline' works only in synchronous mode: one process does one thing at "
            "a time",
        )
