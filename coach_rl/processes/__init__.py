"""Work in other processes: environments, evaluations, jobs.

May import core. Start with `worker_process`, an object in a process of its own, whose rules for
signals, parents, errors and warnings all clients share.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.processes.worker_messages import WorkerLost
    from coach_rl.processes.worker_process import WorkerProcess
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["WorkerLost", "WorkerProcess"]
