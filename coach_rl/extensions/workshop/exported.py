"""The symmetry of an ant in a workshop as functions of tensors, for exported policies."""

from coach_rl.environments.goal_worlds.ant_workshop import WorkshopTurns
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.goal_worlds.exported import Complex, pair, way_of


@way_of.register
def _workshop_way(turns: WorkshopTurns, seen: Tensors) -> Complex:
    values = seen["observation"]
    if turns.due is None:
        return pair(values, turns.first)
    first = turns.first + 2 * values[:, turns.due].argmax(dim=1, keepdim=True)  # [R, 1]
    return Complex(values.gather(1, first)[:, 0], values.gather(1, first + 1)[:, 0])
