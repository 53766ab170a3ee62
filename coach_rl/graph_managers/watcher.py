"""Watchers of evaluations, which film or show their episodes."""

from typing import Protocol

from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.graph_managers.episode_tracker import FinishedEpisodes
from coach_rl.graph_managers.stack import Stack


class EvaluationWatcher(Protocol):
    """Sees every tick of the evaluations; it reads the stack and changes nothing.

    graph_manager.create_graph(runtime, watcher=recorder)
    """

    every: int
    """Every n-th evaluation while training is watched; others are all watched."""

    def prepare(self, stack: Stack) -> None:
        """Raise `ConfigurationError` if it cannot be watched, `RunError` if drawing fails."""
        ...

    def begin(self, stack: Stack, due: IntArray) -> None:
        """An evaluation begins: the stack was just reset, its rows play `due` [N] episodes each."""
        ...

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        ...

    def wants_replay(self, episodes: FinishedEpisodes, /) -> bool:
        """Return whether the episodes of the evaluation just over are to be played again."""
        ...
