"""Runs in several processes that make their gradient steps together, with averaged gradients.

May import what running may. Start with `parallel`, the callback that joins a run to the others;
`ranks` is what the processes exchange, `together` the agents that learn at the same time,
`statistics` the running statistics that they merge, `command` what torchrun starts.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.parallel.parallel import ParallelParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ParallelParameters"]
