"""The videos of a run: what films its episodes, and what writes them into its folder.

videos = Videos(VideoParameters(episodes="best"))
graph_manager.create_graph(watcher=videos.watcher, recorder=videos.recorder)
videos.write(folder / "step_2048")                                  # after an evaluation
videos.close()
"""

from pathlib import Path

from coach_rl.telemetry.episode_recorder import EpisodeRecorder, TrainingRecorder
from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.video import VideoParameters
from coach_rl.telemetry.video_writer import VideoWriter


class Videos:
    """Films what the parameters say, and writes it while the run continues.

    Args:
        parameters: Which, and how.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        self.watcher: EpisodeRecorder | None = None
        """Films evaluations; None where training is filmed."""
        self.recorder: TrainingRecorder | None = None
        """Films training episodes; None where evaluations are filmed."""
        if parameters.of == "evaluation":
            self.watcher = EpisodeRecorder(parameters)
        else:
            self.recorder = TrainingRecorder(parameters)
        self._writer = VideoWriter(parameters)

    def write(self, path: Path) -> None:
        """Begin to write the film of the last evaluation, if it was filmed.

        Args:
            path: Where to, without the format's ending.
        """
        film = None if self.watcher is None else self.watcher.take_film()
        if film is not None:
            self._writer.write(film, path)

    def write_training(self, path: Path, *, is_last: bool = False) -> None:
        """Begin to write the film of a training episode, if one was chosen.

        Args:
            path: Where to, without the format's ending.
            is_last: Whether no more episodes follow.
        """
        films = () if self.recorder is None else self.recorder.take_films(is_last=is_last)
        for film in films:
            self._writer.write(film, path)

    def write_until(self, record: LogRecord, folder: Path, *, is_final: bool) -> None:
        """Begin to write what was filmed until a record of the run.

        Args:
            record: An evaluation, the end of an episode, or another, for which there is nothing.
            folder: Where to.
            is_final: Whether the record is the last of the run; then all is written on return.
        """
        name = f"step_{record.environment_steps}"
        if record.kind == "episode" or is_final:
            self.write_training(folder / f"{name}_training", is_last=is_final)
        if record.kind == "evaluation":
            self.write(folder / (f"{name}_final" if is_final else name))
        if is_final:
            self.close()

    def written(self) -> list[Path]:
        """Return the files that have been written since the last call."""
        return self._writer.written()

    def failures(self) -> list[tuple[Path, BaseException]]:
        """Return what could not be written since the last call, and why."""
        return self._writer.failures()

    def close(self) -> None:
        """Wait until everything is written; harmless when repeated."""
        self._writer.close()
