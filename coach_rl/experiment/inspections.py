"""Putting inspectors into the memories of an experiment whose parameters are already there."""

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import InspectParameters
from coach_rl.core.roles import KeepingParameters
from coach_rl.experiment.overrides import replace_everywhere
from coach_rl.graph_managers import GraphManager


def inspected(
    graph_manager: GraphManager, inspections: tuple[InspectParameters, ...]
) -> GraphManager:
    """The same experiment with these inspections added to every memory that takes any.

    Raises:
        ConfigurationError: There is no such memory.
    """

    def more(memory: KeepingParameters) -> KeepingParameters:
        return memory.inspected(inspections)

    changed, places = replace_everywhere(graph_manager.parameters, KeepingParameters, more)
    if not places:
        raise ConfigurationError(
            "there is no sampler to inspect: no agent of this experiment has a replay memory; "
            "leave --inspect out, or choose an off-policy preset"
        )
    return type(graph_manager)(changed)
