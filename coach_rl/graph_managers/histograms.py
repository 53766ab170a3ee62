"""Histograms of an experiment: what its agents have learned, what they see and do.

histograms = Histograms(graph_manager.graph, EnvironmentSteps(10_000))
for record in graph_manager.improve():
    for each in histograms.due_at(record):
        sink.write(each)
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parts import walk
from coach_rl.core.records import Action, Array, Observation
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.statistics import histogram

DECISIONS = 256
"""Ticks of a level whose observations and actions are kept: the newest."""


class Histograms:
    """Watches the levels that train, and makes a record for each of them every so many steps.

    Args:
        graph: The graph, built with environments to train in.
        every: Environment steps from one set of histograms to the next.
    """

    def __init__(self, graph: Graph, every: EnvironmentSteps) -> None:
        self._graph, self._every = graph, every.count
        self._due = self._next_after(graph.clock.environment_steps)
        self._seen: dict[str, deque[dict[str, Array]]] = {}
        for level in graph.training.levels:
            kept = self._seen[level.name] = deque(maxlen=DECISIONS)
            level.on_decision = lambda seen, action, kept=kept: kept.append(_named(seen, action))

    def due_at(self, record: LogRecord) -> Iterator[LogRecord]:
        """The histograms that are due when this record is there, one record a level."""
        if record.phase is Phase.TEST or record.environment_steps < self._due:
            return
        self._due = self._next_after(record.environment_steps)
        for level in self._graph.levels:
            agent, kept = self._graph.agents[level.name], self._seen[level.name]
            arrays = learned(agent)
            for name in kept[-1] if kept else ():
                arrays[name] = np.concatenate([each[name] for each in kept])
            yield replace(
                record,
                kind="histogram",
                level=level.name,
                agent=level.agent.name,
                scalars={},
                text="",
                arrays={name: histogram(values) for name, values in arrays.items()},
            )

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
