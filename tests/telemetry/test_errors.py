"""Input that telemetry refuses: a call, the kind of error, and what its one line contains."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest

from coach_rl.core.errors import (
    ConfigurationError,
    ParameterError,
)
from coach_rl.graph_managers import bootstrap_interval, interquartile_mean
from coach_rl.graph_managers.statistics import SignalWindows
from coach_rl.telemetry.video import VideoParameters, require_writable
from tests.refusals import check_refused


def interval(scores, **changed):
    return bootstrap_interval(scores, interquartile_mean, rng=np.random.default_rng(0), **changed)


PARAMETERS = [
    (VideoParameters, {"formats": ("avi",)}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"formats": ()}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"frame_skip": 0}, "frame_skip must be int > 0, got 0"),
    (VideoParameters, {"max_frames": 1}, "max_frames must be int >= 2, got 1"),
    (VideoParameters, {"max_side": 8}, "max_side must be int >= 32"),
    (VideoParameters, {"episodes": "worst"}, "episodes must be ... best ... last"),
    (interval, {"scores": []}, "no scores"),
    (interval, {"scores": [1.0], "confidence": 1.0}, "between 0 and 1, got 1.0"),
    (interquartile_mean, {"scores": []}, "of no scores"),
    *(
        (SignalWindows().note, {"name": "gap", "values": values}, "signal 'gap' takes numbers, got")
        for values in ("fast", {"speed": 1.0}, None, [[1], [1, 2]])
    ),
]
"""Calls, their arguments, and parts of the message in their order."""
PACKAGES = [
    *(
        (
            package,
            lambda: require_writable("gif", "mp4"),
            f"package {package.replace('_', '-')} ... pip install -e ... video ... GIFs",
        )
        for package in ("imageio", "imageio_ffmpeg")
    ),
]
"""Packages, calls that need them, and parts of the message without them."""


@pytest.mark.parametrize(("call", "arguments", "message"), PARAMETERS)
def test_telemetry_invalid_input_error(call, arguments, message):
    check_refused(lambda: call(**arguments), ParameterError, message)


@pytest.mark.parametrize(("package", "call", "message"), PACKAGES)
def test_telemetry_missing_package_error(monkeypatch, package, call, message):
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "IPython.display", ModuleType("IPython.display"))
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    require_writable("gif")  # GIFs need no package
    check_refused(call, ConfigurationError, message)
