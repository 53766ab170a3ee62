"""Data of a simulator as the levels of a hierarchy see them.

A level above the lowest acts in goals of the level below: a transition of the simulator is shown to
it as the decision for the goal that was achieved by it. A level below the top has goals: it is
shown that goal as its own. Longer decisions and other goals are cut from trajectories when batches
are drawn, by the level's memory; see `DataGoalsMaker`.
"""

from dataclasses import replace

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import Array
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import ACTIONS, DURATIONS, NEXT_OBSERVATIONS, OBSERVATIONS, under
from coach_rl.memories.parts import MemoryPartParameters


class DataGoalsMaker(MemoryPartParameters):
    """Base of parts of memories that give all transitions of a batch goals from trajectories.

    A level of a hierarchy learns from data where its memory has one.
    """


class UsesDataBelow:
    """Base of parameters of agents without a replay memory that use what the level below keeps.

    They are allowed above levels that learn from data, such as an agent that plans on places of
    the data.
    """


def data_of_level(
    recorded: Recorded, level: LevelDescription, below: LevelDescription | None, *, is_top: bool
) -> Recorded:
    """The transitions of a simulator as a level sees them, one decision each.

    Args:
        recorded: The simulator's.
        level: The level.
        below: The one below; None for the simulator.
        is_top: Whether no level is above.

    Raises:
        ConfigurationError: A level receives no goals.
    """
    before = under(OBSERVATIONS, recorded.columns)
    after = under(NEXT_OBSERVATIONS, recorded.columns)
    columns: dict[str, Array] = dict(recorded.columns)
    if below is not None:
        sent = _goals_of(below)
        columns[ACTIONS] = sent.asked_in_hindsight(before, after, columns[DURATIONS])
    if level.goal_space is not None or not is_top:
        own = _goals_of(level)
        goals = own.given_by(before) if is_top else own.turned(own.achieved(after))
        for prefix, seen in ((OBSERVATIONS, before), (NEXT_OBSERVATIONS, after)):
            shown = own.show(goals.astype("float32"), seen)
            columns |= {f"{prefix}{key}": values for key, values in shown.items()}
    return replace(recorded, columns=columns)


def _goals_of(level: LevelDescription) -> GoalSpace:
    goal = level.goal_space
    if not isinstance(goal, GoalSpace) or goal.ages:
        raise ConfigurationError(
            f"level '{level.name}' learns from data with goals without a time, under '{GOAL_KEY}'; "
            f"give it a GoalSpace, got {type(goal).__name__}"
        )
    return goal
