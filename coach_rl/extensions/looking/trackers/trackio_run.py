"""Runs of Trackio."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coach_rl.core.records import Array
from coach_rl.extensions.looking.trackers.tracker import TrackedRun, TrackerRun


class TrackioRun(TrackerRun):
    """A run of Trackio, found by its name in the project; its tags are in its config."""

    def __init__(self, run: TrackedRun) -> None:
        import trackio

        self._media: Any = trackio
        """The module, for its classes of media."""
        self._run: Any = trackio.init(
            project=run.project,
            name=run.name,
            group=run.group,
            resume="allow",
            embed=False,
            config={**run.config, "tags": list(run.tags)},
        )

    def log(self, scalars: Mapping[str, object], step: int) -> None:
        self._run.log(dict(scalars), step=step)

    def log_image(self, name: str, image: Array, step: int) -> None:
        self.log({name: self._media.Image(image)}, step)

    def log_video(self, file: Path, step: int) -> None:
        video = self._media.Video(str(file), format=file.suffix.removeprefix("."))
        self.log({f"videos/{file.stem}": video}, step)

    def finish(self) -> None:
        self._run.finish()
