"""Recording an episode of evaluations, with the goals of the levels.

recorder = EpisodeRecorder(VideoParameters(episodes="best"))
graph_manager.create_graph(runtime, watcher=recorder)
for record in graph_manager.improve():
    if record.kind == "evaluation":
        recorder.write(folder / f"step_{record.environment_steps}")

A recorder only reads levels and draws frames: a run's numbers are the same with and without it. If
a frame cannot be drawn, it issues a `CoachWarning` and stops recording. An `EpisodePlayer` passes
frames to a window, or to any other sink of frames, as they are drawn.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from coach_rl.core.errors import RunError, warn
from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.telemetry.camera import Camera, FilmedStack
from coach_rl.telemetry.video import Film, FrameSink, VideoParameters, require_writable


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


class EpisodePlayer:
    """Passes frames of the episodes of an evaluation's first row to a sink, as they are played.

    Args:
        new_sink: Makes what receives the frames of an episode.
        on_end: Called with each episode that is over.
    """

    every = 1
    """Every n-th evaluation while training is observed; others are all observed."""

    def __init__(
        self,
        new_sink: Callable[[], FrameSink],
        on_end: Callable[[FilmedEpisode], None] = lambda _: None,
    ) -> None:
        self._new_sink, self._on_end = new_sink, on_end

    def prepare(self, stack: FilmedStack) -> None:
        """Raise `ConfigurationError` if it cannot be filmed, `RunError` if drawing fails."""
        Camera(stack, 0).start()

    def begin(self, stack: FilmedStack, due: IntArray) -> None:
        """An evaluation begins: the stack was just reset, its rows play `due` [N] episodes each."""
        self.follow(stack, 0, wanted=range(due[0]))

    def follow(self, stack: FilmedStack, row: int, *, wanted: range) -> None:
        """Follow a row of a stack that was just reset.

        Args:
            stack: The stack.
            row: The row.
            wanted: Numbers of the episodes that are shown. Episodes that a failure of the simulator
                cuts short have no number: the next one takes it.
        """
        self._camera = Camera(stack, row)
        self._stack, self._row, self._wanted = stack, row, wanted
        self._tracker = EpisodeTracker(stack.simulators.num_envs)
        self._start(0)

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
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
            self._start(episode.number + 1)

    def wants_replay(self, _episodes: FinishedEpisodes, /) -> bool:
        """Return whether the episodes of the evaluation just over are to be played again."""
        return False

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
            acting = [level.acting(self._row) for level in self._stack.path(self._row)]
            if acting != [level.name for level in self._stack.levels]:
                words.append(" > ".join(acting))
        return ", ".join(word for word in words if word)


class EpisodeRecorder(EpisodePlayer):
    """Films one episode of each evaluation; stops, with a warning, if a frame cannot be drawn.

    Args:
        parameters: Which episode, how many frames are kept, and in what format they are written.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    TIMED: ClassVar[Mapping[str, str]] = {"begin": "film", "note_tick": "film", "write": "encode"}

    def __init__(self, parameters: VideoParameters) -> None:
        require_writable(*parameters.formats)
        super().__init__(self._new_film)
        self._parameters = parameters
        self.every = parameters.every
        self.film: Film | None = None
        """The film of the last evaluation; None before the first, and once it is written."""
        self._chosen: tuple[int, int] | None = None
        """Row and number of the episode to film when the evaluation is played again."""
        self._is_blind = False
        """True once a frame could not be drawn."""

    def prepare(self, stack: FilmedStack) -> None:
        with self._drawing():
            super().prepare(stack)

    def begin(self, stack: FilmedStack, due: IntArray) -> None:
        is_known = self._parameters.episodes == "last" or self._chosen is not None
        row, number = self._chosen or (0, int(due[0]) - 1)
        self.film = self._chosen = None
        is_filmed = is_known and not self._is_blind
        wanted = range(number, number + 1) if is_filmed else range(0)
        with self._drawing():
            self.follow(stack, row, wanted=wanted)

    def note_tick(self, answer: EnvResponse) -> None:
        with self._drawing():
            super().note_tick(answer)

    def wants_replay(self, episodes: FinishedEpisodes, /) -> bool:
        if self._parameters.episodes == "last" or self._is_blind:
            return False
        rows = episodes.rows
        best = int(episodes.reward.argmax())
        self._chosen = int(rows[best]), int(np.count_nonzero(rows[:best] == rows[best]))
        return True

    def write(self, path: Path) -> list[Path]:
        """Write the film of the last evaluation, if it was filmed, to `path` with each ending.

        Returns:
            The files.

        Raises:
            RunError: A file cannot be written.
        """
        film = self.film
        self.film = None
        if film is None:
            return []
        files = [path.with_name(f"{path.name}.{kind}") for kind in self._parameters.formats]
        for file in files:
            film.write(file)
        return files

    def _new_film(self) -> Film:
        self.film = Film(self._parameters)
        return self.film

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        try:
            yield
        except RunError as error:
            self._is_blind = True
            self.film = self._sink = None
            self._wanted = range(0)
            warn(f"nothing is filmed: {error}", above=3)
