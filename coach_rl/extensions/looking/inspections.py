"""Inspections of a run, which check the data that pass points of its graph.

GraphParameters(..., callbacks=(InspectParameters(point="batch", checks=("nan",)),))
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from coach_rl.core.errors import ConfigurationError, UnknownNameError, require
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import wrap_method
from coach_rl.core.ranges import NonEmpty, Positive, RisingPair
from coach_rl.core.state import State
from coach_rl.extensions.looking.data_points import Columns, DataPoint
from coach_rl.extensions.looking.inspector import Check, Finding, Inspector, Reaction
from coach_rl.extensions.looking.points import Points, points_of_graph
from coach_rl.graph_managers.graph import Graph, Tick
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.progress import Progress

KIND = "inspection"
"""The kind of its records."""


@parameter_class
class InspectParameters:
    """A point to inspect, the checks, their interval, and the reaction to what they find."""

    point: NonEmpty[str] = "batch"
    """The point, or a column of it, such as `batch/reward`; `filter` stands for all points below
    it."""
    level: str | None = None
    """The level to inspect; None: every level that has the point."""
    checks: NonEmpty[tuple[Check, ...]] = ("nan", "shape")
    """nan: numbers that are not finite. shape: columns whose shape or dtype changes. range: numbers
    outside `within`. stats: report mean, standard deviation, minimum and maximum of each column.
    staleness: report the age of what is learned from, and find what is older than `oldest`."""
    within: RisingPair | None = None
    """Bounds of the check `range`; None: those of the spaces of observations and actions."""
    oldest: Positive[int] | None = None
    """Greatest age allowed by the check `staleness`; None: any."""
    every: Positive[int] = 1
    """Interval of checks, in calls; the first call is always checked."""
    reaction: Reaction = "stop"
    """stop: end the run, with what was found in a file. dump: warn, write what was found to a file
    and continue. warn: warn and continue."""

    def __str__(self) -> str:
        """Its name among the callbacks of a run."""
        place = self.point if self.level is None else f"{self.level}.{self.point}"
        return f"inspection of {place}: {', '.join(self.checks)}"

    def build(self) -> "Inspection":
        """A new callback that inspects the point."""
        return Inspection(self)

    def __post_init__(self) -> None:
        for name, check in {"within": "range", "oldest": "staleness"}.items():
            require(
                getattr(self, name) is None or check in self.checks,
                f"InspectParameters.{name} is for the check '{check}', which is not among "
                f"{self.checks}; add it, or leave {name} out",
            )


class Inspection:
    """A callback that inspects data while the graph trains; evaluations are not inspected.

    Args:
        parameters: The point, the checks, and the reaction.
    """

    def __init__(self, parameters: InspectParameters) -> None:
        self._params = parameters
        self._is_training = False
        self._inspectors: dict[str, Inspector] = {}

    def begin(self, run: GraphManager) -> None:
        """Observe the points; only the calls that are observed are replaced.

        Raises:
            ConfigurationError: A point or level does not exist, or cannot be inspected in this run.
        """
        graph = run.graph
        progress = run.progress
        chosen = _chosen(self._params, points_of_graph(graph))
        _check(self._params, [point for _, point, _ in chosen], graph)
        for level, point, column in chosen:

            def note(finding: Finding) -> None:
                progress.added.append(partial(_record, progress, finding))

            inspector = Inspector(self._params, point, level=level, column=column, note=note)
            self._inspectors[inspector.name] = inspector
            point.watch(self._while_training(inspector))
        tick = graph.tick

        def inspected_tick() -> Tick:
            self._is_training = True
            try:
                return tick()
            finally:
                self._is_training = False

        wrap_method(graph, "tick", inspected_tick)

    def __call__(self, record: LogRecord, run: GraphManager) -> None:
        """Add nothing to a record: what is found is added as it is found."""

    def state_dict(self) -> State:
        """The states of the inspectors; valid between two records."""
        return {name: inspector.state_dict() for name, inspector in self._inspectors.items()}

    def load_state_dict(self, state: State) -> None:
        """Load the states of the saved inspectors; others start empty."""
        for name, inspector in self._inspectors.items():
            if name in state:
                inspector.load_state_dict(state[name])

    def _while_training(self, inspector: Inspector) -> Callable[[Callable[[], Columns]], None]:
        def inspect(shown: Callable[[], Columns]) -> None:
            if self._is_training:
                inspector.inspect(shown)

        return inspect


def _record(progress: Progress, finding: Finding) -> LogRecord:
    """The record of a finding, once the tick in which it was made is over."""
    record = progress.record(
        KIND, finding.scalars, level=finding.level, agent=finding.agent, is_frequent=True
    )
    return replace(
        record,
        text=finding.text,
        problem="finding of an inspection" if finding.text else "",
        table="inspections",
        columns=finding.columns,
        file=f"inspections/{finding.name}",
    )


def _chosen(params: InspectParameters, points: Points) -> list[tuple[str, DataPoint, str]]:
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


def _check(params: InspectParameters, points: Sequence[DataPoint], graph: Graph) -> None:
    """Raise a ConfigurationError if none of the points has what a check needs."""
    is_elsewhere = not graph.training.source.acts_here
    elsewhere = [point.name for point in points if point.is_acting and is_elsewhere]
    if elsewhere:
        raise ConfigurationError(
            f"'{elsewhere[0]}' cannot be inspected, because agents act in other processes; leave "
            "out the workers, or inspect other points"
        )
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
