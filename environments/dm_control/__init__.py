"""Tasks of the DeepMind Control Suite, from state or pictures; needs the extra `dm_control`.

Imports core and the adapters for Gymnasium and MuJoCo of this room. Start with `parameters` (the
description in a preset), then `control_task` (steps, observations, ends), `pictures` and
`physics_state`; `tasks` lists the names.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.dm_control.control_task import ControlTask
    from coach_rl.environments.dm_control.parameters import DMControlParameters
    from coach_rl.environments.dm_control.tasks import BENCHMARK_TASKS
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BENCHMARK_TASKS", "ControlTask", "DMControlParameters"]
