"""MuJoCo tasks in batches: N simulators of one model, stepped by threads, rewarded in numpy.

The eleven v5 tasks of Gymnasium are built in and equal Gymnasium's own to the last bit; a task of
your own is a subclass of `MujocoTask` (see docs/how_to_mujoco_task.md). May import coach_rl.core
only. Start reading in `batch.py` (what a step is), then `task.py` (what a task is) and
`locomotion.py` (`HalfCheetah` is a small example).
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.mujoco.batch import MujocoBatch
    from coach_rl.environments.mujoco.parameters import (
        SHORT_NAMES,
        TASKS,
        MujocoParameters,
        MujocoTaskParameters,
    )
    from coach_rl.environments.mujoco.task import MujocoState, MujocoTask, Range, Scene
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "SHORT_NAMES", "TASKS", "MujocoBatch", "MujocoParameters", "MujocoState", "MujocoTask",
    "MujocoTaskParameters", "Range", "Scene",
]  # fmt: skip
