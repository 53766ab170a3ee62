"""Writing videos in a thread of its own, so that nobody waits for them.

writer = VideoWriter(VideoParameters())
writer.write(film, folder / "videos" / "step_2048")
writer.close()                                  # waits until all are written
for path, error in writer.failures():
    ...
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from coach_rl.telemetry.film import Film
from coach_rl.telemetry.video import VideoParameters, write_video


class VideoWriter:
    """Writes films one after the other; those that wait are on disk, see `Film`.

    Args:
        parameters: Formats, sizes and speed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        self._parameters = parameters
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="videos")
        self._writing: list[tuple[Path, Future[list[Path]]]] = []
        self._written: list[Path] = []

    def write(self, film: Film, path: Path) -> None:
        """Write a film that is complete as soon as those before it are written.

        Args:
            film: Which.
            path: Where to, without the format's ending.
        """
        future = self._thread.submit(write_video, film.shots, path, self._parameters)
        self._writing.append((path, future))

    def written(self) -> list[Path]:
        """Return the files that have been written since the last call, as `failures` has seen."""
        files, self._written = self._written, []
        return files

    def failures(self) -> list[tuple[Path, BaseException]]:
        """Return what could not be written since the last call, and why."""
        done = [(path, future) for path, future in self._writing if future.done()]
        self._writing = [(path, future) for path, future in self._writing if not future.done()]
        self._written += [
            file for _, each in done if not each.exception() for file in each.result()
        ]
        return [(path, error) for path, future in done if (error := future.exception())]

    def close(self) -> None:
        """Wait until all films are written; harmless when repeated."""
        self._thread.shutdown()
