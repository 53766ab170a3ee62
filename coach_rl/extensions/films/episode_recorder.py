"""Films of evaluations, an episode of each, with the goals of the levels.

recorder = EpisodeRecorder(VideoParameters(episodes="best"))
graph_manager.create_graph(runtime, watchers=[recorder])
for record in graph_manager.improve():
    if record.kind == "evaluation":
        recorder.write(folder / f"step_{record.moment}")

A recorder only reads levels and draws frames: a run's numbers are the same with and without it. If
a frame cannot be drawn, it issues a `CoachWarning` and stops recording. As a part of a run,
`VideoParameters` writes the films into the run's folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from coach_rl.configuration.file_writing import make_folder
from coach_rl.core.errors import RunError, warn
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.extensions.films.episode_player import EpisodePlayer
from coach_rl.extensions.films.video import Film, FilmParameters, require_writable
from coach_rl.graph_managers.episode_tracker import FinishedEpisodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.watcher import EvaluationWatcher
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.run_parts import PartResult, RunContext, RunPart, Written
from coach_rl.sessions.settings import RunPartParameters, RunSettings

Format = Literal["gif", "mp4"]


@parameter_class
class VideoParameters(FilmParameters, RunPartParameters):
    """Settings of films of evaluations: which episode, and how it is written."""

    name: ClassVar[str] = "videos"

    formats: NonEmpty[tuple[Format, ...]] = ("gif",)
    """gif, mp4 or both."""
    episodes: Literal["best", "last"] = "last"
    """last: the last episode of the first environment. best: the episode with the highest return;
    the evaluation is played twice, to film that one alone."""
    every: Positive[int] = 1
    """Every n-th evaluation is filmed, and the last in any case."""

    def check(self, settings: RunSettings) -> None:  # noqa: ARG002
        require_writable(*self.formats)

    def build(self, settings: RunSettings) -> RunPart:  # noqa: ARG002
        return FilmedEvaluations(self)


class FilmedEvaluations(RunPart):
    """Films evaluations of a run into its folder.

    Args:
        parameters: Which episode, how many frames are kept, and in what format they are written.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        self._recorder = EpisodeRecorder(parameters)
        self.watchers: Sequence[EvaluationWatcher] = (self._recorder,)

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        self._run = run
        yield

    def follow(self, record: LogRecord) -> Iterator[LogRecord]:
        """Write the film of an evaluation, if it was filmed; a failure does not stop the run."""
        endings = {"evaluation": "", "final_evaluation": "_final"}
        if record.kind not in endings:
            return
        name = f"step_{record.moment}{endings[record.kind]}"
        try:
            files = self._recorder.write(videos_of(self._run.folder) / name)
        except RunError as error:
            self._run.failures.note("videos", f"the video {name}", error)
            return
        for file in files:
            path = file.relative_to(self._run.folder.path)
            yield self._run.record("file", text=str(path))

    def evaluated(self, file: Path) -> Iterator[Written]:
        path = evaluation_film(file)
        try:
            make_folder(path.parent)
        except OSError as error:
            warn(f"the film cannot be written to {path.parent}: {error.strerror}")
            return
        for each in self._recorder.write(path):
            yield Written(what="filmed as", path=each)

    def result(self) -> PartResult:
        folder = videos_of(self._run.folder)
        written = (Written(what="videos", path=folder),) if folder.is_dir() else ()
        return PartResult(written=written)


def videos_of(run: RunFolder) -> Path:
    """The folder of a run's videos; exists once there is one."""
    return run.path / "videos"


def evaluation_film(file: Path) -> Path:
    """The path of the video of an evaluation apart from training, without the format's ending.

    Args:
        file: What `evaluate_run` wrote.
    """
    return videos_of(RunFolder(file.parent.parent)) / f"{file.stem}_evaluation"


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

    def prepare(self, stack: Stack) -> None:
        with self._drawing():
            super().prepare(stack)

    def begin(self, stack: Stack, due: IntArray) -> None:
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

    def wants_replay(self, episodes: FinishedEpisodes) -> bool:
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
            warn(f"nothing is filmed: {error}")
