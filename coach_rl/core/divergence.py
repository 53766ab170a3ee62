"""The response to an agent whose loss, gradient or parameters are no longer finite."""

from typing import Literal

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive


@parameter_class
class DivergenceParameters:
    """The response to a gradient step with a loss, gradient or parameter that is not finite."""

    response: Literal["stop", "skip", "roll_back"] = "stop"
    """`stop` ends the run with a diagnosis. `skip` leaves networks, optimisers and targets as they
    were before the step. `roll_back` goes back to the last checkpoint and continues with new random
    numbers; only runs that write checkpoints can, others stop."""
    most_skipped: Positive[int] = 100
    """Steps skipped in a row after which the run stops all the same (response `skip`)."""
    most_roll_backs: Positive[int] = 3
    """Times a run is rolled back before it stops all the same (response `roll_back`)."""

    @property
    def skips(self) -> bool:
        """True if such a step is undone and the next one taken."""
        return self.response == "skip"


STOP = DivergenceParameters()
"""The default: a run stops."""
