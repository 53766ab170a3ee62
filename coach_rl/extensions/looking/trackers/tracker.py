"""Experiment trackers: the interface of their runs, and the sink that logs there.

BasicGraphParameters(..., sinks=(TrackerParameters(service=NAME, project="walking"),))

A tracker of your own is a `TrackerRun`, which a function among the sinks opens:

def journal(run):
    return TrackerSink(run, Journal, project="walking")

Each shows the same names by the same environment steps as TensorBoard.
"""

import importlib
import importlib.util
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coach_rl.configuration.file_writing import replacing
from coach_rl.core.errors import ConfigurationError, UnknownNameError, how_to_install
from coach_rl.core.log_records import LogRecord, SinkRun, by_tag
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import Array
from coach_rl.extensions.looking.trackers.services import SUFFIX, services

_ID = "tracker_id.txt"
"""The file in a run's folder with its id."""
_VIDEOS = (".gif", ".mp4")
_MILESTONES = ("checkpoint", "final_evaluation")
"""Records at which videos are sent, and which a killed run does not repeat."""


@parameter_class
class TrackerParameters:
    """An experiment tracker that takes a run's records.

    Its address and the account are configured as the service's documentation describes, by
    environment variables and commands of its own.
    """

    service: str
    """The service, by the name of its package and of our extra."""
    project: NonEmpty[str] = "coach_rl"
    """The project there."""
    tags: tuple[str, ...] = ()
    """Tags besides the experiment's name, its preset and its level."""

    def __post_init__(self) -> None:
        if self.service not in services():
            is_board = "tensorboard".startswith(self.service.lower())
            hint = "TensorBoard's files are written without it" if is_board else ""
            raise UnknownNameError("tracker", self.service, services(), hint)

    def __str__(self) -> str:
        return self.service

    def check(self) -> None:
        """Raise `ConfigurationError` if the package is missing, or no account is logged in."""
        if importlib.util.find_spec(self.service) is None:
            raise ConfigurationError(
                f"the tracker {self} needs the package {self.service}, which is not installed; "
                f"{how_to_install(self.service)}"
            )
        self._run_class().check()

    def build(self, run: SinkRun) -> "TrackerSink":
        """A new sink, which continues the tracker's run if this run has been there before."""
        return TrackerSink(run, self._run_class(), project=self.project, tags=self.tags)

    def _run_class(self) -> "type[TrackerRun]":
        """The class of the service's runs; its package is imported."""
        module = importlib.import_module(f"{__package__}.{self.service}{SUFFIX}")
        run_class: type[TrackerRun] = getattr(module, f"{self.service.capitalize()}Run")
        return run_class


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """The description of a run for its tracker."""

    folder: Path
    """The run's folder."""
    id: str
    """The run's id, the same in all parts of a run that is resumed, and no other run's."""
    project: str
    """The project."""
    name: str
    """The run's name there."""
    group: str
    """The experiment's name."""
    tags: tuple[str, ...]
    """Tags."""
    config: Mapping[str, object]
    """The settings of the run, see `SinkRun`."""


class TrackerRun(Protocol):
    """A run that is open in a tracker; its class is called with the `TrackedRun`.

    tracker_run = Journal(tracked)       # a new run, or the one that has this id
    tracker_run.log({"evaluation/reward_mean": 3.5}, 1_000)
    tracker_run.log_video(Path("videos/step_1000.gif"), 1_000)
    tracker_run.flush()
    tracker_run.finish()

    An error is a warning and costs records, until the run is opened again after five minutes.
    """

    @staticmethod
    def check() -> None:
        """Raise `ConfigurationError` where no run can be opened, such as without an account."""

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        """Log numbers by name at a number of environment steps, which may be an earlier one."""
        ...

    def log_image(self, name: str, image: Array, step: int) -> None:
        """Log a picture, uint8 [H, W] or [H, W, 3]."""
        ...

    def log_video(self, file: Path, step: int) -> None:
        """Log a film, a GIF or MP4 file."""
        ...

    def flush(self) -> None:
        """Store what has been logged, at a checkpoint: a resumed run does not log it again."""

    def finish(self) -> None:
        """Store what has been logged, and close the run."""
        ...


class TrackerSink:
    """Logs scalars and pictures of every record, and the videos that appear in the run's folder.

    Args:
        run: The run whose records it takes.
        open_run: Opens the run in the tracker, or opens it again.
        project: The project there.
        tags: Tags besides the experiment's name, its preset and its level.
    """

    def __init__(
        self,
        run: SinkRun,
        open_run: Callable[[TrackedRun], TrackerRun],
        *,
        project: str = "coach_rl",
        tags: tuple[str, ...] = (),
    ) -> None:
        self._folder = run.folder
        self._sent = set(self._videos())
        self._step = 0
        self._run = open_run(_tracked(run, project, tags))
        self._is_open = True

    def write(self, record: LogRecord) -> None:
        self._step = record.moment
        if scalars := by_tag(record, record.scalars):
            self._run.log(scalars, self._step)
        for tag, image in by_tag(record, record.images).items():
            self._run.log_image(tag, image, self._step)
        if record.kind in _MILESTONES:
            self._send_videos()
            self._run.flush()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._send_videos()
            self._run.finish()

    def _videos(self) -> list[Path]:
        return sorted(each for each in self._folder.glob("videos/*") if each.suffix in _VIDEOS)

    def _send_videos(self) -> None:
        """Log the videos that are new."""
        for video in self._videos():
            if video not in self._sent:
                self._run.log_video(video, self._step)
                self._sent.add(video)


def _tracked(run: SinkRun, project: str, tags: tuple[str, ...]) -> TrackedRun:
    name = run.manifest["name"]
    preset = run.manifest["preset"]
    known = (name, run.manifest["level"], *(() if preset is None else (preset["name"],)))
    return TrackedRun(
        folder=run.folder,
        id=_id(run.folder / _ID),
        project=project,
        name=f"{name} {run.folder.name}",
        group=name,
        tags=tuple(dict.fromkeys((*known, *tags))),
        config=run.settings,
    )


def _id(file: Path) -> str:
    """The id in a file, where a new one is written if there is none."""
    if not file.exists():
        with replacing(file) as new:
            new.write_text(uuid.uuid4().hex[:12], encoding="utf-8")
    return file.read_text(encoding="utf-8")
