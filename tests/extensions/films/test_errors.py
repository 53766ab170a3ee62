"""Errors of films: each message names the cause and the next step, in one line."""

import importlib.util
import sys

import pytest

from coach_rl import BasicRLGraphManager
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.films.episode_recorder import EpisodeRecorder, VideoParameters
from coach_rl.extensions.films.video import require_writable
from tests.refusals import check_refused
from tests.small_runs import experiment, ppo


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
