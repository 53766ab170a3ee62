"""Histograms of an experiment: what its agents have learned, what they see and do.

parts = (HistogramParameters(every=EnvironmentSteps(2_000)),)
run_experiment(..., settings=RunSettings(parts=parts))
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.errors import require
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import walk
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, Observation
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.statistics import histogram
from coach_rl.sessions.run_parts import RunContext, RunPart
from coach_rl.sessions.settings import RunPartParameters, RunSettings

KIND = "histogram"
"""The kind of their records."""
DECISIONS = 256
"""Ticks of a level whose observations and actions are kept: the newest."""


@parameter_class
class HistogramParameters(RunPartParameters):
    """Histograms of parameters, gradients, actions and observations, for TensorBoard."""

    name: ClassVar[str] = "histograms"

    every: Positive[EnvironmentSteps] = EnvironmentSteps(10_000)
    """Steps from one set of histograms to the next."""

    def check(self, settings: RunSettings) -> None:
        require(
            settings.tensorboard,
            "histograms are for TensorBoard, which is off; leave out one of them",
        )

    def build(self, settings: RunSettings) -> RunPart:  # noqa: ARG002
        return Histograms(self.every)


class Histograms(RunPart):
    """Watches the levels that train, and makes a record for each of them every so many steps.

    Args:
        every: Environment steps from one set of histograms to the next.
    """

    def __init__(self, every: EnvironmentSteps) -> None:
        self._every = every.count
        self._due = 0
        self._seen: dict[str, deque[dict[str, Array]]] = {}

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        self._graph = run.graph_manager.graph
        self._progress = run.graph_manager.progress
        self._begin()
        for level in self._graph.training.levels:
            level.listeners.append(partial(self._note, level.name))
        yield

    def follow(self, record: LogRecord) -> Iterator[LogRecord]:
        """The histograms that are due when this record is there, one record a level."""
        if record.kind == "roll_back":
            self._begin()
        if record.phase is Phase.TEST or record.moment < self._due:
            return
        self._due = self._next_after(record.moment)
        for level in self._graph.levels:
            agent = self._graph.agents[level.name]
            kept = self._seen[level.name]
            arrays = learned(agent)
            for name in kept[-1] if kept else ():
                arrays[name] = np.concatenate([each[name] for each in kept])
            yield replace(
                record,
                kind=KIND,
                is_in_log=False,
                level=level.name,
                agent=level.agent.name,
                scalars={},
                text="",
                arrays={name: histogram(values) for name, values in arrays.items()},
            )

    def _begin(self) -> None:
        """Begin where training is now."""
        self._due = self._next_after(self._progress.moment)
        for level in self._graph.training.levels:
            self._seen[level.name] = deque(maxlen=DECISIONS)

    def _note(self, level: str, seen: Observation, action: Action) -> None:
        """Keep decisions of a level."""
        self._seen[level].append(_named(seen, action))

    def _next_after(self, steps: int) -> int:
        return (steps // self._every + 1) * self._every


def learned(agent: object) -> dict[str, Array]:
    """Parameters and mean gradients of an agent: `parameters/<name>`, `gradients/<name>`; copies.

    Those of a group's members have the member's name in front of theirs.
    """
    found = {}
    for part in walk(agent):
        if hasattr(part.value, "learned"):
            for path, values in part.value.learned().items():
                kind, _, name = path.partition("/")
                found["/".join([kind, *part.members, name])] = values
    return found


def _named(seen: Observation, action: Action) -> dict[str, Array]:
    """Observations and actions by the names of their histograms, copied."""
    actions = action if isinstance(action, dict) else {"": action}
    named = {f"observations/{key}": values for key, values in seen.items()}
    named |= {f"actions/{key}".rstrip("/"): values for key, values in actions.items()}
    return {name: values.reshape(-1).copy() for name, values in named.items()}
