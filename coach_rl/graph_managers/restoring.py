"""The test of whether open episodes can be saved and restored."""

from coach_rl.core.errors import CheckpointError
from coach_rl.core.interfaces import Environment, EnvironmentParameters, ProbedParameters


def obstacle_to_restoring(
    environment: Environment, parameters: EnvironmentParameters
) -> str | None:
    """Return what keeps open episodes from being saved and restored; None if nothing is found.

    May take a second or two, where the parameters know a way to try it.

    Args:
        environment: Asked whether it has a state at all.
        parameters: The environment's.
    """
    try:
        environment.state_dict()
    except CheckpointError as error:
        return str(error)
    return parameters.obstacle_to_restoring() if isinstance(parameters, ProbedParameters) else None
