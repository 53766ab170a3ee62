"""Input that telemetry refuses: a call, the kind of error, and what its one line contains."""

import importlib.util
import re
import sys
from types import ModuleType

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.telemetry import (
    NotebookSink,
    TrackerParameters,
    VideoParameters,
    bootstrap_interval,
    interquartile_mean,
)
from coach_rl.telemetry.statistics import SignalWindows
from coach_rl.telemetry.video import require_writable


def interval(scores, **changed):
    return bootstrap_interval(scores, interquartile_mean, rng=np.random.default_rng(0), **changed)


PARAMETERS = [
    (VideoParameters, {"formats": ("avi",)}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"formats": ()}, "formats must be ... gif ... mp4"),
    (VideoParameters, {"frame_skip": 0}, "frame_skip must be int > 0, got 0"),
    (VideoParameters, {"max_frames": 1}, "max_frames must be int >= 2, got 1"),
    (VideoParameters, {"max_side": 8}, "max_side must be int >= 32"),
    (VideoParameters, {"frames_per_second": 0}, "frames_per_second must be int > 0"),
    (VideoParameters, {"max_megabytes": 0.0}, "max_megabytes must be float > 0"),
    (TrackerParameters, {"service": "comet"}, "'wandb' or 'trackio' or 'mlflow'"),
    (TrackerParameters, {"service": "mlflow", "project": ""}, "project"),
    (interval, {"scores": []}, "no scores"),
    (interval, {"scores": [1.0], "confidence": 1.0}, "between 0 and 1, got 1.0"),
    (interval, {"scores": [1.0], "resamples": 0}, "resamples must be 1 or more, got 0"),
    (interquartile_mean, {"scores": []}, "of no scores"),
    *(
        (SignalWindows().note, {"name": "gap", "values": values}, "signal 'gap' takes numbers, got")
        for values in ("fast", {"speed": 1.0}, None, [[1], [1, 2]])
    ),
]
"""Calls, their arguments, and parts of the message in their order."""
PACKAGES = [
    *(
        (service, TrackerParameters(service=service).check, f"package {service} ... [{service}]")
        for service in ("wandb", "trackio", "mlflow")
    ),
    ("IPython.display", NotebookSink, "with IPython and matplotlib ... IPython.display"),
    ("matplotlib.figure", NotebookSink, "with IPython and matplotlib ... matplotlib.figure"),
    *(
        (
            package,
            lambda: require_writable(VideoParameters(formats=("gif", "mp4"))),
            f"package {package.replace('_', '-')} ... pip install -e ... video ... GIFs",
        )
        for package in ("imageio", "imageio_ffmpeg")
    ),
]
"""Packages, calls that need them, and parts of the message without them."""


def check_message(error, message):
    text = str(error.value)
    assert "\n" not in text
    assert re.search(".*".join(map(re.escape, message.split(" ... "))), text), text


@pytest.mark.parametrize(("call", "arguments", "message"), PARAMETERS)
def test_telemetry_invalid_input_error(call, arguments, message):
    with pytest.raises(ParameterError) as error:
        call(**arguments)
    check_message(error, message)


@pytest.mark.parametrize(("package", "call", "message"), PACKAGES)
def test_telemetry_missing_package_error(monkeypatch, package, call, message):
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "IPython.display", ModuleType("IPython.display"))
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    require_writable(VideoParameters())  # GIFs need no package
    with pytest.raises(ConfigurationError) as error:
        call()
    check_message(error, message)
