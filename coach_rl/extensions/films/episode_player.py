"""Following the episodes of an evaluation, with the goals of the levels, frame by frame.

player = EpisodePlayer(lambda: window, on_end=print)
graph_manager.create_graph(runtime, watchers=[player])
graph_manager.evaluate(EnvironmentEpisodes(1))
"""

from collections.abc import Callable
from dataclasses import dataclass

from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.extensions.films.camera import Camera, acting_of
from coach_rl.extensions.films.video import FrameSink
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.watcher import EvaluationWatcher


@dataclass
class FilmedEpisode:
    """An episode that is filmed."""

    number: int
    """Its number in its row; 0 is the first."""
    step: int = 0
    """Steps so far."""
    reward: float = 0.0
    """Sum of their raw rewards."""
    ending: str = ""
    """The way it ended, in a word or two; empty while it lasts."""

    def __str__(self) -> str:
        reward = f"{self.reward:.5g}"
        return f"episode {self.number + 1}: return {reward}, {self.step} steps, {self.ending}"


class EpisodePlayer(EvaluationWatcher):
    """Passes frames of the episodes of an evaluation's first row to a sink, as they are played.

    Args:
        new_sink: Makes what receives the frames of an episode.
        on_end: Called with each episode that is over.
    """

    draws = True

    def __init__(
        self,
        new_sink: Callable[[], FrameSink],
        on_end: Callable[[FilmedEpisode], None] = lambda _: None,
    ) -> None:
        self._new_sink = new_sink
        self._on_end = on_end
        self.lengths: list[int] = []
        """Steps of the episodes that are over, since the evaluation began."""
        self.shows = True
        """False while an evaluation is followed for the lengths of its episodes alone."""

    def prepare(self, stack: Stack) -> None:
        """Raise `ConfigurationError` if it cannot be filmed, `RunError` if drawing fails."""
        Camera(stack, 0).start()

    def begin(self, stack: Stack, due: IntArray) -> None:
        self.follow(stack, 0, wanted=range(due[0] if self.shows else 0))

    def follow(self, stack: Stack, row: int, *, wanted: range) -> None:
        """Follow a row of a stack that was just reset.

        Args:
            stack: The stack.
            row: The row.
            wanted: Numbers of the episodes that are shown. Episodes that a failure of the simulator
                cuts short have no number: the next one takes it.
        """
        self._camera = Camera(stack, row)
        self._stack = stack
        self._row = row
        self._wanted = wanted
        self._tracker = EpisodeTracker(stack.simulators.num_envs)
        self.lengths = []
        self._start(0)

    def note_tick(self, answer: EnvResponse) -> None:
        finished = self._tracker.note(answer)
        (mine,) = (answer.rows == self._row).nonzero()
        episode = self._episode
        if not len(mine):
            return
        if answer.faults and answer.lost[mine[0]]:
            self._start(episode.number)
            return
        episode.step += int(answer.duration[mine[0]])
        episode.reward += float(answer.reward[mine[0]])
        episode.ending = self._ending(finished)
        if self._sink is not None:
            self._show(self._sink)
        if episode.ending:
            self.lengths.append(episode.step)
            self._start(episode.number + 1)

    def _start(self, number: int) -> None:
        self._episode = FilmedEpisode(number)
        self._sink = self._new_sink() if number in self._wanted else None
        if self._sink is not None:
            self._picture = self._camera.start()
            if self._picture is not None:
                self._sink.add(self._picture, self._caption())

    def _show(self, sink: FrameSink) -> None:
        """Add the state that the last tick led to."""
        if self._episode.ending:
            picture = self._camera.ended()
            if picture is None:
                picture = self._camera.picture() if self._picture is None else self._picture
            sink.add(picture, self._caption(), is_last=True)
            self._on_end(self._episode)
        elif self._picture is None or sink.wants(self._episode.step):
            self._picture = self._camera.picture()
            sink.add(self._picture, self._caption())

    def _ending(self, finished: FinishedEpisodes | None) -> str:
        """The way the row's episode ended, in a word; empty where it continues."""
        if finished is None or not (mine := finished.rows == self._row).any():
            return ""
        if not self._tracker.reports_success:
            return "the end"
        return "success" if finished.success[mine][0] else "no success"

    def _caption(self) -> str:
        """Step and return, how the episode ended, and who acts if there are several to act."""
        episode = self._episode
        words = [f"step {episode.step}", f"return {episode.reward:.5g}", episode.ending]
        if episode.step:
            acting = [acting_of(level, self._row) for level in self._stack.path(self._row)]
            if acting != [level.name for level in self._stack.levels]:
                words.append(" > ".join(acting))
        return ", ".join(word for word in words if word)
