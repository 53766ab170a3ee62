"""Recording chosen episodes of evaluations or of training, with goals and marks of the levels.

recorder = EpisodeRecorder(VideoParameters(episodes="best"))
graph_manager.create_graph(runtime, watcher=recorder)
for record in graph_manager.improve():
    if record.kind == "evaluation" and (film := recorder.take_film()):
        write_video(film.shots, folder / f"step_{record.environment_steps}", recorder.parameters)

A recorder only reads levels and draws frames: a run's numbers are the same with and without it. If
a frame cannot be drawn or stored, it issues a `CoachWarning` and stops recording. `FilmedRow`
films any episodes of one row:

row = FilmedRow(stack, 0, wants=lambda number: number == 2, new_reel=Film)
row.note_tick(stack.tick())                     # every tick, from the reset on
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from coach_rl.core.errors import RunError, in_one_line, warn
from coach_rl.core.records import Array, EnvResponse, take
from coach_rl.telemetry.camera import Camera, FilmedLevel, FilmedStack, level_colour
from coach_rl.telemetry.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.telemetry.video import (
    RGB,
    CaptionLine,
    Film,
    Reel,
    Shot,
    VideoParameters,
    require_writable,
)


class FilmedRow:
    """Follows the episodes of a row, and films those that are wanted.

    Args:
        stack: Whose row; just reset, unless its episode is under way.
        row: Which.
        wants: Whether the episode of that number is filmed; 0 is the first. Episodes that a failure
            of the simulator cuts short have no number: the next one takes it.
        new_reel: Makes what takes the frames of an episode.
        on_end: Called with each episode that was filmed to its end.
        is_midway: Whether an episode is under way; it has no number.
    """

    def __init__(
        self,
        stack: FilmedStack,
        row: int,
        *,
        wants: Callable[[int], bool],
        new_reel: Callable[[], Reel],
        on_end: Callable[["Take"], None] = lambda _: None,
        is_midway: bool = False,
    ) -> None:
        self._camera, self._stack, self._row = Camera(stack, row), stack, row
        self._wants, self._new_reel, self._on_end = wants, new_reel, on_end
        self._tracker = EpisodeTracker(stack.num_envs)
        self._number = -1 if is_midway else 0
        self._take = None if is_midway else self._next_take()

    @property
    def is_filming(self) -> bool:
        """True while the episode of the row is filmed."""
        return self._take is not None

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        ended = self._tracker.note(answer)
        (mine,) = (answer.rows == self._row).nonzero()
        if not len(mine):
            return
        if answer.faults and answer.lost[mine][0]:
            self._take = None if self._number < 0 else self._next_take()
            return
        ending = self._ending(ended)
        if self._take is not None:
            self._take.note_tick(answer.rows_of(mine), ending)
        if ending:
            if self._take is not None:
                self._on_end(self._take)
            self._number += 1
            self._take = self._next_take()

    def _next_take(self) -> "Take | None":
        if not self._wants(self._number):
            return None
        return Take(self._number, self._new_reel(), self._stack, self._camera, self._row)

    def _ending(self, ended: FinishedEpisodes | None) -> str:
        """The way the row's episode ended, in a word; empty where it continues."""
        if ended is None or not (mine := ended.rows == self._row).any():
            return ""
        if not self._tracker.reports_success:
            return "the end"
        return "success" if ended.success[mine][0] else "no success"


class Take:
    """One episode being filmed.

    Args:
        number: Of the episode.
        reel: Takes the frames.
        stack: Its row is at the start of an episode.
        camera: Draws the row.
        row: Which.
    """

    def __init__(
        self, number: int, reel: Reel, stack: FilmedStack, camera: Camera, row: int
    ) -> None:
        self.number, self.reel = number, reel
        self.step, self.reward = 0, 0.0
        """Steps of the episode so far, and the sum of their raw rewards."""
        self.ending = ""
        """The way it ended, in a word or two; empty while it lasts."""
        self._camera = camera
        self._levels = [
            _LevelState(level, level_colour(index), row)
            for index, level in enumerate(stack.levels[1:])
            if level.goals is not None
        ]
        self._path = stack.path if _names_acting(stack, row) else None
        self._row = row
        self._last: Array | None = None
        if not camera.has_pictures:  # with them it begins after the first decision
            (self._last,) = camera.scene()
            self.reel.add(self._last, self._caption())

    def note_tick(self, answer: EnvResponse, ending: str) -> None:
        """Film what a tick led to.

        Args:
            answer: Of the row alone.
            ending: How the episode ended; empty where it continues.
        """
        self.ending = ending
        self.step += int(answer.duration[0])
        self.reward += float(answer.reward[0])
        for level in self._levels:
            level.note_tick(answer)
        if ending:
            frame = self._camera.ended_frame()
            if frame is None:
                frame = self._camera.frame() if self._last is None else self._last
            self.reel.end(frame, self._caption())
        elif self._last is None or self.reel.wants(self.step):
            self._last = self._camera.frame()
            self.reel.add(self._last, self._caption())

    def _caption(self) -> list[CaptionLine]:
        """Step and return, who acts, and a line for each level that has goals."""
        words = [f"step {self.step}", f"return {self.reward:.5g}", *filter(None, [self.ending])]
        lines = [CaptionLine(", ".join(words))]
        if self._path is not None:
            path = self._path(self._row) if self.step else ()
            acting = " > ".join(level.acting(self._row) for level in path)
            lines.append(CaptionLine(f"acting: {acting or 'none yet'}"))
        return [*lines, *(level.line() for level in self._levels)]


class _LevelState:
    """The line about a level below the top.

    Args:
        level: The level.
        colour: Colour of its goals.
        row: The row that is filmed.
    """

    def __init__(self, level: FilmedLevel, colour: RGB, row: int) -> None:
        self._level, self._colour, self._row = level, colour, row
        self._number = self._decisions = self._over = self._reached = 0
        """Goals received, decisions for the last of them, goals dropped or reached, and reached.
        """
        self._is_open = self._is_reached = False
        self._return = ""

    def note_tick(self, answer: EnvResponse) -> None:
        """Update the counts after a tick; the answer contains this row alone."""
        goals, row = self._level.goals, slice(self._row, self._row + 1)
        assert goals is not None
        self._number += not self._is_open
        self._is_open = bool(goals.open[self._row])
        self._decisions = int(goals.decisions[self._row])
        space = goals.goal_space
        if callable(space.reward) or space.overridden("judge"):  # neither -1 and 0 nor a distance
            self._return = f", return {goals.own_return[self._row]:.4g}"
        if not self._is_open:
            reached = goals.goal_space.reached(goals.goal[row], take(answer.observation, slice(1)))
            self._is_reached = bool(reached[0])
            self._over += 1
            self._reached += self._is_reached

    def line(self) -> CaptionLine:
        """The number of its goal, decisions for it, its own return, and how many were reached."""
        if not self._number:
            return CaptionLine(f"{self._level.name}: no goal yet", self._colour, has_dot=True)
        state = "" if self._is_open else (" reached" if self._is_reached else " missed")
        horizon = self._level.params.horizon
        of = "" if horizon is None else f" of {horizon}"
        text = (
            f"{self._level.name}: goal {self._number}{state}, decision {self._decisions}{of}"
            f"{self._return}; "
            f"reached {self._reached} of {self._over}"
        )
        return CaptionLine(text, self._colour, has_dot=True)


def _names_acting(stack: FilmedStack, row: int) -> bool:
    """Return whether one of several levels, members or options acts at a time."""
    return any(
        len(level.params.below or ()) > 1 or level.acting(row) != level.name
        for level in stack.levels
    )


class EvaluationWatcher(Protocol):
    """Observes a stack during evaluations."""

    def prepare(self, stack: FilmedStack) -> None:
        """The stack was built, and reset for the first time."""
        ...

    @property
    def every(self) -> int:
        """Observe every n-th evaluation of training; others are all observed."""
        ...

    @property
    def is_drawing(self) -> bool:
        """True while it draws frames, which can take longer than the evaluation itself."""
        ...

    def begin(self, stack: FilmedStack) -> None:
        """Start observing an evaluation, whose stack was just reset."""
        ...

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        ...

    def wants_replay(self, episodes: FinishedEpisodes, /) -> bool:
        """Return whether the episodes of the evaluation just over are to be played again."""
        ...


class _Recorder:
    """The parts shared by recorders of evaluations and of training.

    Args:
        parameters: As of `EpisodeRecorder`.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        require_writable(parameters)
        self.parameters = parameters
        self._filmed: FilmedRow | None = None
        self._is_blind = False
        """True once a frame could not be drawn or stored."""

    def prepare(self, stack: FilmedStack) -> None:
        """Draw a frame, to check that the stack's environment can be drawn.

        Raises:
            ConfigurationError: It has no pictures, or no such row.
        """
        with self._drawing():
            Camera(stack, self.parameters.row or 0).scene()

    def note_tick(self, answer: EnvResponse) -> None:
        if self._filmed is not None:
            with self._drawing():
                self._filmed.note_tick(answer)

    def _new_film(self) -> Film:
        parameters = self.parameters
        return Film(
            frame_skip=parameters.frame_skip,
            max_frames=parameters.max_frames,
            max_side=parameters.max_side,
        )

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Stop filming, with a warning, if a frame cannot be drawn or stored inside."""
        try:
            yield
        except (RunError, OSError) as error:
            self._is_blind, self._filmed = True, None
            why = str(error) if isinstance(error, RunError) else in_one_line(error)
            warn(f"nothing is filmed: {why}", above=3)


class EpisodeRecorder(_Recorder):
    """Films one episode of each evaluation.

    Args:
        parameters: Which episode, how many frames are kept, and in what format they will be
            written.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        super().__init__(parameters)
        self._chosen: tuple[int, int] | None = None
        """Row and number of the episode to film, where it is chosen by its outcome."""
        self._film: Film | None = None

    @property
    def is_drawing(self) -> bool:
        """True while the chosen episode is played."""
        return self._filmed is not None and self._filmed.is_filming

    @property
    def shots(self) -> Sequence[Shot]:
        """The film of the last evaluation; empty before the first."""
        return () if self._film is None else self._film.shots

    def take_film(self) -> Film | None:
        """Remove and return the film of the last evaluation; None if it was not filmed."""
        film, self._film, self._filmed = self._film, None, None
        return None if self._is_blind else film

    @property
    def every(self) -> int:
        return self.parameters.every

    def begin(self, stack: FilmedStack) -> None:
        self._film = self._filmed = None
        is_known = self.parameters.episodes == "first" or self._chosen is not None
        if self._is_blind or not is_known:
            return
        row, number = self._chosen or (self.parameters.row or 0, 0)
        self._chosen = None
        with self._drawing():
            self._filmed = FilmedRow(
                stack, row, wants=lambda of: of == number, new_reel=self._keep_film
            )

    def wants_replay(self, episodes: FinishedEpisodes, /) -> bool:
        """Return whether the evaluation is repeated to film its best, worst or longest episode."""
        rows, row = episodes.rows, self.parameters.row
        if self.parameters.episodes == "first" or self._filmed is not None or self._is_blind:
            return False
        scores = np.array(
            [
                self.parameters.score_of(float(reward), int(length))
                for reward, length in zip(episodes.reward, episodes.length, strict=True)
            ]
        )
        if row is not None and (rows == row).any():
            scores[rows != row] = -np.inf
        best = int(scores.argmax())
        self._chosen = int(rows[best]), int(np.count_nonzero(rows[:best] == rows[best]))
        return True

    def _keep_film(self) -> Film:
        self._film = self._new_film()
        return self._film


class TrainingRecorder(_Recorder):
    """Films one of every so many training episodes of a row.

    Args:
        parameters: As of `EpisodeRecorder`.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        super().__init__(parameters)
        self._best: tuple[float, Film] | None = None
        """Score and film of the best of the episodes among which one is chosen."""
        self._films: list[Film] = []

    @property
    def is_filming(self) -> bool:
        """True once it follows a stack, or cannot film."""
        return self._filmed is not None or self._is_blind

    def take_films(self, *, is_last: bool = False) -> list[Film]:
        """Return the films that were chosen since the last call.

        Args:
            is_last: Whether no more episodes follow: the best so far is chosen, too.
        """
        films, self._films = self._films, []
        if is_last and self._best is not None:
            films.append(self._best[1])
            self._best = None
        return films

    def begin(self, stack: FilmedStack, *, is_midway: Sequence[bool]) -> None:
        """Follow the stack where agents train from now on.

        Args:
            stack: Which.
            is_midway: For each row, whether an episode is under way; it is not filmed.
        """
        row, every = self.parameters.row or 0, self.parameters.every
        takes_all = self.parameters.episodes != "first"
        with self._drawing():
            self._filmed = FilmedRow(
                stack,
                row,
                wants=lambda number: takes_all or number % every == 0,
                new_reel=self._new_film,
                on_end=self._choose,
                is_midway=is_midway[row],
            )

    def forget(self) -> None:
        """Drop what is being filmed, as the stack has another state."""
        self._filmed = self._best = None

    def _choose(self, take: Take) -> None:
        score = self.parameters.score_of(take.reward, take.step)
        assert isinstance(take.reel, Film)
        if self._best is None or score > self._best[0]:
            self._best = score, take.reel
        if self.parameters.episodes == "first" or (take.number + 1) % self.parameters.every == 0:
            self._films.append(self._best[1])
            self._best = None


class EpisodePlayer:
    """Shows the first episodes of an evaluation's first row.

    Args:
        episodes: How many.
        new_reel: Makes what takes the frames of an episode.
        on_end: Called with each episode that is over.
    """

    def __init__(
        self, episodes: int, new_reel: Callable[[], Reel], on_end: Callable[[Take], None]
    ) -> None:
        self._episodes, self._new_reel, self._on_end = episodes, new_reel, on_end
        self._filmed: FilmedRow | None = None

    def prepare(self, stack: FilmedStack) -> None:
        """Draw a frame, to check that the stack's environment can be drawn.

        Raises:
            ConfigurationError: It has no pictures.
            RunError: It cannot be drawn on this machine.
        """
        Camera(stack, 0).scene()

    @property
    def every(self) -> int:
        return 1

    @property
    def is_drawing(self) -> bool:
        """True until all episodes have been shown."""
        return self._filmed is not None and self._filmed.is_filming

    def begin(self, stack: FilmedStack) -> None:
        self._filmed = FilmedRow(
            stack,
            0,
            wants=lambda number: number < self._episodes,
            new_reel=self._new_reel,
            on_end=self._on_end,
        )

    def note_tick(self, answer: EnvResponse) -> None:
        assert self._filmed is not None
        self._filmed.note_tick(answer)

    def wants_replay(self, _episodes: FinishedEpisodes, /) -> bool:
        return False
