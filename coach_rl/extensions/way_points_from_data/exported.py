"""Plans on a graph from data are not exported: their ways begin with values of the level below."""

from coach_rl.extensions.exporting.decisions import Decision, Place, decision_of, refused
from coach_rl.extensions.way_points_from_data.data_graph import DataGraphAgent


@decision_of.register
def _state_plan(agent: DataGraphAgent, place: Place) -> Decision:  # noqa: ARG001 - as decision_of
    raise refused(agent, "its ways begin with values of the level below")
