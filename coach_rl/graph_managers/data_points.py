"""Points of a graph where data pass: of its simulators, and of its agents."""

from collections.abc import Mapping, Sequence

from coach_rl.core.data_points import DataPoint, after_calls, flat, points_of
from coach_rl.core.records import Array, EnvResponse
from coach_rl.graph_managers.graph import Graph

Points = Mapping[str, Sequence[DataPoint]]
"""Points by the level's name; those of the simulators under the empty name."""
_ANSWERED = ("observation", "reward", "terminated", "truncated", "duration")


def points_of_graph(graph: Graph) -> Points:
    """The points of a graph with a stack to train in."""
    simulators = graph.training.simulators
    space = simulators.spaces.observation.spaces

    def answered(answer: EnvResponse) -> dict[str, Array]:
        if not len(answer):
            return {}
        return flat({name: getattr(answer, name) for name in _ANSWERED})

    environment = DataPoint(
        name="environment",
        watch=after_calls(simulators, "recv", answered),
        spaces=flat({"observation": space}),
    )
    agents = {name: points_of(agent) for name, agent in graph.agents.items()}
    return {"": [environment], **{name: points for name, points in agents.items() if points}}
