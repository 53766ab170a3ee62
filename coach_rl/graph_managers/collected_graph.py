"""A stack of training whose levels form a graph, above workers."""

from dataclasses import dataclass

from coach_rl.graph_managers.collected_stack import CollectedStack
from coach_rl.graph_managers.graph_stack import GraphStack


@dataclass(frozen=True, kw_only=True)
class CollectedGraph(CollectedStack, GraphStack):
    """Levels that form a graph, above workers."""
