"""Filming chosen episodes of evaluations or of training; see `filmed_row` for what is drawn.

recorder = EpisodeRecorder(VideoParameters(episodes="best"))
graph_manager.create_graph(runtime, watcher=recorder)
for record in graph_manager.improve():
    if record.kind == "evaluation" and (film := recorder.take_film()):
        write_video(film.shots, folder / f"step_{record.environment_steps}", recorder.parameters)

Nothing a recorder does changes a run's numbers: it looks at levels and draws frames. Where a frame
cannot be drawn or kept, a `CoachWarning` says so and nothing more is filmed.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from coach_rl.core.errors import CoachWarning, RunError, in_one_line
from coach_rl.core.records import EnvResponse
from coach_rl.telemetry.episode_tracker import FinishedEpisodes
from coach_rl.telemetry.film import Film, Reel, Shot
from coach_rl.telemetry.filmed_row import Camera, FilmedRow, FilmedStack, Take
from coach_rl.telemetry.video import VideoParameters, require_writable


class EvaluationWatcher(Protocol):
    """Looks at a stack while evaluations are played in it."""

    def prepare(self, stack: FilmedStack) -> None:
        """The stack was built, and reset for the first time."""
        ...

    @property
    def every(self) -> int:
        """It looks at every n-th evaluation while training, and at all others."""
        ...

    @property
    def is_drawing(self) -> bool:
        """True while it draws frames, which can take longer than the evaluation itself."""
        ...

    def begin(self, stack: FilmedStack) -> None:
        """An evaluation begins; its stack was just reset."""
        ...

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        ...

    def looks_again(self, episodes: FinishedEpisodes, /) -> bool:
        """The evaluation is over; return whether the same episodes are to be played once more."""
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
        """True once something could not be drawn or kept."""

    def prepare(self, stack: FilmedStack) -> None:
        """Make sure that the stack's environment can be drawn, by drawing a frame.

        Raises:
            ConfigurationError: It has no pictures, or no such row.
        """
        with self._drawing():
            Camera(stack, self.parameters.row or 0).frame()

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
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
        """Let what cannot be drawn or kept inside end the filming, and nothing else."""
        try:
            yield
        except (RunError, OSError) as error:
            self._is_blind, self._filmed = True, None
            why = str(error) if isinstance(error, RunError) else in_one_line(error)
            warnings.warn(f"nothing is filmed: {why}", CoachWarning, stacklevel=4)


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
        """Return the film of the last evaluation, and forget it; None if it was not filmed."""
        film, self._film, self._filmed = self._film, None, None
        return None if self._is_blind else film

    @property
    def every(self) -> int:
        """It looks at every n-th evaluation while training, and at all others."""
        return self.parameters.every

    def begin(self, stack: FilmedStack) -> None:
        """An evaluation begins; its stack was just reset."""
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

    def looks_again(self, episodes: FinishedEpisodes, /) -> bool:
        """The evaluation is over; return whether its best, worst or longest is to be filmed now."""
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
        """The stack has been led to another state: begin anew."""
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
        """Make sure that the stack's environment can be drawn, by drawing a frame.

        Raises:
            ConfigurationError: It has no pictures.
            RunError: It cannot be drawn on this machine.
        """
        Camera(stack, 0).frame()

    @property
    def every(self) -> int:
        """It looks at every evaluation."""
        return 1

    @property
    def is_drawing(self) -> bool:
        """True until all episodes have been shown."""
        return self._filmed is not None and self._filmed.is_filming

    def begin(self, stack: FilmedStack) -> None:
        """An evaluation begins; its stack was just reset."""
        self._filmed = FilmedRow(
            stack,
            0,
            wants=lambda number: number < self._episodes,
            new_reel=self._new_reel,
            on_end=self._on_end,
        )

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        assert self._filmed is not None
        self._filmed.note_tick(answer)

    def looks_again(self, _episodes: FinishedEpisodes, /) -> bool:
        """The evaluation is over, and has been shown."""
        return False
