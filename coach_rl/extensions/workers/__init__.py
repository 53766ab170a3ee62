"""Workers: processes that act and step environments for a run.

May import what graph managers may, and processes. Start with `collection`, the source of a run's
ticks; `collectors` has the workers in place of simulators, `block_worker` a worker's own stack,
`worker_places` the places where workers are, also on a Ray cluster.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.workers.collection import CollectionParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["CollectionParameters"]
