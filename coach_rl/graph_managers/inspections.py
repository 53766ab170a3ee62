"""The inspections of a run: the points of its graph that are inspected, and their findings."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.inspection import (
    Columns,
    InspectionPoint,
    InspectParameters,
    after_calls,
    flat,
    points_of,
    stand_before,
)
from coach_rl.core.log_records import LogRecord
from coach_rl.core.records import Array, EnvResponse
from coach_rl.core.state import State
from coach_rl.graph_managers.graph import Graph, Tick
from coach_rl.graph_managers.progress import Progress
from coach_rl.telemetry.inspection import Finding, Inspector

_ANSWERED = ("observation", "reward", "terminated", "truncated", "duration")

Points = Mapping[str, Sequence[InspectionPoint]]
"""Points by the level's name; those of the simulators under the empty name."""


class Inspections:
    """Inspects the data at points of a graph while it trains; evaluations are not inspected.

    Args:
        parameters: The inspections.
        graph: The graph, with a stack to train in if there are inspections. Only the inspected
            calls are replaced.
        progress: The run's; records of findings are yielded before its others.

    Raises:
        ConfigurationError: A point or level does not exist, or cannot be inspected in this run.
    """

    def __init__(
        self, parameters: Sequence[InspectParameters], graph: Graph, progress: Progress
    ) -> None:
        self._found: list[Finding] = []
        self._is_training = False
        self._inspectors: dict[str, Inspector] = {}
        if not parameters:
            return
        points = inspection_points(graph)
        for each in dict.fromkeys(parameters):
            chosen = _chosen(each, points)
            _check(each, [point for _, point, _ in chosen])
            for level, point, column in chosen:
                inspector = Inspector(
                    each, point, level=level, column=column, note=self._found.append
                )
                self._inspectors[inspector.name] = inspector
                point.watch(self._while_training(inspector))
        tick, settling = graph.tick, progress.settling

        def inspected_tick() -> Tick:
            self._is_training = True
            try:
                return tick()
            finally:
                self._is_training = False

        def with_findings(records: Sequence[LogRecord]) -> Iterator[LogRecord]:
            found = [progress.inspection_record(each) for each in self._found]
            self._found.clear()
            yield from settling([*found, *records])

        stand_before(graph, "tick", inspected_tick)
        stand_before(progress, "settling", with_findings)

    def state_dict(self) -> State:
        """The states of the inspectors; valid between two records."""
        return {name: inspector.state_dict() for name, inspector in self._inspectors.items()}

    def load_state_dict(self, state: State) -> None:
        """Load the states of the saved inspectors; others start empty."""
        self._found.clear()  # of a tick that was not completed
        for name, inspector in self._inspectors.items():
            if name in state:
                inspector.load_state_dict(state[name])

    def _while_training(self, inspector: Inspector) -> Callable[[Callable[[], Columns]], None]:
        def inspect(shown: Callable[[], Columns]) -> None:
            if self._is_training:
                inspector.inspect(shown)

        return inspect


def inspection_points(graph: Graph) -> Points:
    """The points of a graph with a stack to train in."""
    simulators = graph.training.simulators
    space = simulators.spaces.observation.spaces

    def answered(answer: EnvResponse) -> dict[str, Array]:
        if not len(answer):
            return {}
        return flat({name: getattr(answer, name) for name in _ANSWERED})

    environment = InspectionPoint(
        name="environment",
        watch=after_calls(simulators, "recv", answered),
        spaces=flat({"observation": space}),
    )
    agents = {name: points_of(agent) for name, agent in graph.agents.items()}
    return {"": [environment], **{name: points for name, points in agents.items() if points}}


def _chosen(params: InspectParameters, points: Points) -> list[tuple[str, InspectionPoint, str]]:
    """Levels and points that an inspection is about, and the column of each; empty for all."""
    if params.level is not None and params.level not in points:
        levels = [name for name in points if name]
        raise UnknownNameError("level", params.level, levels, where="in an inspection")
    candidates = [
        (level, point)
        for level, own in points.items()
        for point in own
        if params.level in (None, level)
    ]
    below = [
        (level, point, "")
        for level, point in candidates
        if f"{point.name}/".startswith(f"{params.point}/")
    ]
    if below:
        return below
    above = [
        (level, point, params.point.removeprefix(f"{point.name}/"))
        for level, point in candidates
        if params.point.startswith(f"{point.name}/")
    ]
    if not above:
        names = {point.name for _, point in candidates}
        rooms = sorted({name.partition("/")[0] for name in names})
        if params.point.partition("/")[0] == "sampler" and "sampler" not in rooms:
            raise ConfigurationError(
                "there is no sampler to inspect, because no replay memory is inspected; "
                f"points here: {', '.join(rooms)}"
            )
        allowed = names if "/" in params.point else rooms
        raise UnknownNameError("inspection point", params.point, allowed)
    longest = max(len(point.name) for _, point, _ in above)
    return [each for each in above if len(each[1].name) == longest]


def _check(params: InspectParameters, points: Sequence[InspectionPoint]) -> None:
    """Raise a ConfigurationError if none of the points has what a check needs."""
    if "range" in params.checks and params.within is None and not any(p.spaces for p in points):
        raise ConfigurationError(
            f"'{params.point}' has no space whose bounds the check 'range' could take; give it "
            f"some: {params.point}:range=LOW..HIGH (InspectParameters.within)"
        )
    if "staleness" in params.checks and not any(point.ages for point in points):
        raise ConfigurationError(
            f"nothing is learned from at '{params.point}', so there is no age for the check "
            "'staleness'; inspect 'batch'"
        )
