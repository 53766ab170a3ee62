"""Putting inspectors into the memories of an experiment whose parameters are already there."""

from typing import Any

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import InspectParameters
from coach_rl.experiment.overrides import replace_everywhere
from coach_rl.graph_managers import GraphManager

FIELD = "inspect"
"""The parameter of a memory that takes inspections."""


def inspected(
    graph_manager: GraphManager, inspections: tuple[InspectParameters, ...]
) -> GraphManager:
    """The same experiment with these inspections added to every memory that takes any.

    Raises:
        ConfigurationError: There is no such memory.
    """

    def more(value: Any) -> Any:
        return (*value, *inspections) if isinstance(value, tuple) else None

    changed, places = replace_everywhere(graph_manager.parameters, FIELD, more)
    if not places:
        raise ConfigurationError(
            "there is no sampler to inspect: no agent of this experiment has a replay memory; "
            "leave --inspect out, or choose an off-policy preset"
        )
    return type(graph_manager)(changed)
