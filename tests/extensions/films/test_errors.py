"""Errors of films: each message names the cause and the next step, in one line."""

import importlib.util
import sys

import pytest

from coach_rl import BasicRLGraphManager
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.extensions.films.episode_recorder import EpisodeRecorder, VideoParameters
from coach_rl.extensions.films.video import require_writable
from tests.refusals import check_refused
from tests.small_runs import experiment, ppo

PARAMETERS = [
    (VideoParameters, {"formats": ("avi",)}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"formats": ()}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"frame_skip": 0}, "frame_skip must be int > 0, got 0"),
    (VideoParameters, {"max_frames": 1}, "max_frames must be int >= 2, got 1"),
    (VideoParameters, {"max_side": 8}, "max_side must be int >= 32"),
    (VideoParameters, {"episodes": "worst"}, "episodes must be ... best ... last"),
]
"""Parameter classes, their arguments, and parts of the message in their order."""


@pytest.mark.parametrize(("call", "arguments", "message"), PARAMETERS)
def test_films_invalid_parameter_error(call, arguments, message):
    check_refused(lambda: call(**arguments), ParameterError, message)


@pytest.mark.parametrize("package", ["imageio", "imageio_ffmpeg"])
def test_films_missing_package_error(monkeypatch, package):
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    require_writable("gif")  # GIFs need no package
    message = f"package {package.replace('_', '-')} ... pip install -e ... video ... GIFs"
    check_refused(lambda: require_writable("gif", "mp4"), ConfigurationError, message)


def test_films_environment_without_pictures_error():
    def film_of_point_mass():
        with BasicRLGraphManager(experiment(ppo(64)).parameters) as manager:
            manager.create_graph(watchers=[EpisodeRecorder(VideoParameters())])

    check_refused(film_of_point_mass, ConfigurationError, "the environment has no pictures")
