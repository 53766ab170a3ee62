"""Properties of a level that don't depend on who decides on it."""

from coach_rl.core.goals import LevelSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval


@parameter_class
class LevelDescription:
    """The facts a level of a stack needs to know about itself."""

    name: str = "main"
    """The level's name in logs."""
    goal_space: LevelSpace | None = None
    """The action space of the level above. At the top, and only there, it may be None; a GoalSpace
    there means that the level's goals are the environment's desired goals, and that they define its
    reward.
    """
    horizon: Positive[int] | None = None
    """Decisions after which a sub-episode ends; None for no limit. At the top the agent's episode
    is cut there, and the simulator continues."""
    real_end_is_terminal: bool = False
    """If True, a real termination cuts the bootstrap also where the level has goals of its own.
    Then dying early is the best policy under rewards of -1 and 0.
    """
    goal_is_terminal: bool = True
    """If True, reaching the level's goal cuts the bootstrap. If False, it ends the sub-episode and
    no more: values go on as if the goal had still to be held, so that a state to which a body
    cannot hold on is worth less.
    """
    testing_rate: UnitInterval | None = None
    """Share of the decisions in training during which nobody below explores: HAC's lambda. None: 0,
    but above the lowest level of a HAC stack the rate of the stack."""
    frozen: bool = False
    """If True, the agent only acts, and neither explores nor learns."""
