"""Filming a run's evaluations into its folder."""

from pathlib import Path

from coach_rl.graph_managers.episode_recorder import EpisodeRecorder
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.telemetry.video import VideoParameters, write_video


class Videos:
    """Films each evaluation of a graph manager, and writes the last one on request.

    Args:
        graph_manager: Whose; its graph is not yet created.
        parameters: How.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    def __init__(self, graph_manager: GraphManager, parameters: VideoParameters) -> None:
        self._parameters = parameters
        self._recorder = EpisodeRecorder(parameters)
        graph_manager.watch_evaluations(self._recorder)

    def write(self, path: Path) -> list[Path]:
        """Write the film of the last evaluation.

        Args:
            path: Where to, without the format's ending.

        Returns:
            A file for each format.
        """
        return write_video(self._recorder.shots, path, self._parameters)
