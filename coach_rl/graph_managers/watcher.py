"""Watchers of evaluations, which see every step that is played in them.

class StepCounter(EvaluationWatcher):
def begin(self, stack, due):
self.steps = 0

def note_tick(self, answer):
self.steps += answer.duration.sum()

graph_manager.create_graph(runtime, watchers=[StepCounter()])
"""

from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.graph_managers.episode_tracker import FinishedEpisodes
from coach_rl.graph_managers.stack import Stack


class EvaluationWatcher:
    """Sees evaluations while they are played; a subclass overrides what it needs.

    It only reads: the numbers of an evaluation are the same with and without it.
    """

    every: int = 1
    """Every n-th evaluation while training is watched; others are all watched."""
    draws: bool = False
    """If True, evaluations are played in an environment that can be drawn, where there is one."""

    def prepare(self, stack: Stack) -> None:
        """The stack of evaluations is built and was reset.

        Raises:
            ConfigurationError: It cannot be watched.
        """

    def begin(self, stack: Stack, due: IntArray) -> None:
        """An evaluation begins: the stack was just reset, its rows play `due` [N] episodes each."""

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""

    def wants_replay(self, episodes: FinishedEpisodes) -> bool:  # noqa: ARG002 - none by default
        """Return whether the evaluation just over is to be played to it once more."""
        return False
