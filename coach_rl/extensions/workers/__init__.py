"""Work of a run in other processes: acting and stepping environments, and evaluating agents.

May import what running may. Start with `collection`, the source of a run's ticks; `collectors` has
the workers in place of simulators, `block_worker` a worker's own stack, `worker_places` the places
where workers are, also on a Ray cluster; `evaluation_process` is a part of a run.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.workers.collection import CollectionParameters
    from coach_rl.extensions.workers.evaluation_process import (
        BackgroundEvaluation,
        EvaluationProcess,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BackgroundEvaluation", "CollectionParameters", "EvaluationProcess"]
