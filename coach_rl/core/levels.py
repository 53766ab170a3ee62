"""Properties of a level that don't depend on who decides on it."""

from coach_rl.core.errors import require
from coach_rl.core.goals import LevelSpace
from coach_rl.core.parameter_classes import parameter_class


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
    horizon: int | None = None
    """Decisions after which a sub-episode ends; None for no limit. At the top the agent's episode
    is cut there, and the simulator continues."""
    real_end_is_terminal: bool = False
    """If True, a real termination cuts the bootstrap also where the level has goals of its own.
    Then dying early is the best policy under rewards of -1 and 0.
    """
    testing_rate: float | None = None
    """Share of the decisions in training during which nobody below explores: HAC's lambda. None: 0,
    but above the lowest level of a HAC stack the rate of the stack."""
    frozen: bool = False
    """If True, the agent only acts, and neither explores nor learns."""

    def __post_init__(self) -> None:
        require(
            self.horizon is None or self.horizon >= 1,
            f"level '{self.name}': horizon must be 1 or more, got {self.horizon}",
        )
        require(
            self.testing_rate is None or 0 <= self.testing_rate <= 1,
            f"level '{self.name}': testing_rate must lie in [0, 1], got {self.testing_rate}",
        )
