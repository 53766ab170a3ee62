"""Environments: simulators that keep the `Environment` contract, batched and exactly reproducible.

May import core, processes, and the tables of extensions in configuration. Start with `by_name` (a
name becomes an environment); then a small one, `toy/point_mass.py` on `world.py`; then `mujoco/`
for speed and `gymnasium/` for breadth. `inbox` is what simulators share;
`coach_rl.extensions.testing` proves that one keeps the contract.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.by_name import level_names, make, parameters
    from coach_rl.environments.faults import FaultParameters
    from coach_rl.environments.world import World, WorldEnvironment, WorldState, WorldStep
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "FaultParameters", "World", "WorldEnvironment", "WorldState", "WorldStep", "level_names",
    "make", "parameters",
]  # fmt: skip
