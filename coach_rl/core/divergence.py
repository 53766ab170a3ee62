"""What happens when an agent's loss, gradient or parameters are no longer finite."""

from typing import Literal

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class


@parameter_class
class DivergenceParameters:
    """The response to a gradient step with a loss, gradient or parameter that is not finite."""

    response: Literal["stop", "skip", "roll_back"] = "stop"
    """`stop` ends the run with a diagnosis. `skip` leaves networks, optimisers and targets as they
    were before the step. `roll_back` goes back to the last checkpoint and continues with new random
    numbers; only runs that write checkpoints can, others stop."""
    most_skipped: int = 100
    """Steps skipped in a row after which the run stops all the same (response `skip`)."""
    most_roll_backs: int = 3
    """Times a run is rolled back before it stops all the same (response `roll_back`)."""

    def __post_init__(self) -> None:
        for name in ("most_skipped", "most_roll_backs"):
            value = getattr(self, name)
            require(value >= 1, f"divergence.{name} must be 1 or more, got {value}")

    @property
    def skips(self) -> bool:
        """True if such a step is undone and the next one taken."""
        return self.response == "skip"


STOP = DivergenceParameters()
"""The default: a run stops."""
