"""Input that telemetry refuses: a call, the kind of error, and what its one line contains."""

import importlib.util
import sys
from types import ModuleType

import numpy as np
import pytest
from gymnasium.spaces import Discrete
from test_inspection import BAD, inspect, inspector

from coach_rl.core.errors import (
    CoachWarning,
    ConfigurationError,
    InspectionError,
    ParameterError,
    UnknownNameError,
)
from coach_rl.core.inspection import InspectionPoint
from coach_rl.graph_managers import bootstrap_interval, interquartile_mean
from coach_rl.graph_managers.statistics import SignalWindows
from coach_rl.telemetry.notebook import NotebookSink
from coach_rl.telemetry.trackers.tracker import TrackerParameters
from tests.refusals import check_refused


def interval(scores, **changed):
    return bootstrap_interval(scores, interquartile_mean, rng=np.random.default_rng(0), **changed)


def inspected(*checks, columns, **options):
    """A call that inspects some columns, one after the other."""

    def call():
        at, _ = inspector(*checks, **options)
        for each in columns:
            inspect(at, **each)

    return call


PARAMETERS = [
    (TrackerParameters, {"service": "mlflow", "project": ""}, "project"),
    (interval, {"scores": []}, "no scores"),
    (interval, {"scores": [1.0], "confidence": 1.0}, "between 0 and 1, got 1.0"),
    (interquartile_mean, {"scores": []}, "of no scores"),
    *(
        (SignalWindows().note, {"name": "gap", "values": values}, "signal 'gap' takes numbers, got")
        for values in ("fast", {"speed": 1.0}, None, [[1], [1, 2]])
    ),
]
"""Calls, their arguments, and parts of the message in their order."""
TWO = [{"x": np.zeros((4, 2))}, {"x": np.zeros((8, 2))}]  # other numbers of rows are no change
OF_ACTIONS = InspectionPoint(name="memory", watch=lambda look: None, spaces={"action": Discrete(3)})
OF_AGES = InspectionPoint(name="batch", watch=lambda look: None, ages=("age",))
INSPECTIONS = [
    (
        inspected("nan", columns=[{"x": [1.0], "flag": [True], "whole": [3]}, {"x": BAD}]),
        InspectionError,
        "'batch' of agent 'ddpg' of level 'low': 'x' is not finite in 2 of 3 rows",
    ),
    (
        inspected("shape", columns=[*TWO, {"x": np.zeros((4, 3))}]),
        InspectionError,
        "was float64 (2,) before and is float64 (3,)",
    ),
    (
        inspected("shape", columns=[*TWO, {"x": np.zeros((4, 3), np.float32)}]),
        InspectionError,
        "is float32 (3,) now",
    ),
    (
        inspected(
            "range",
            columns=[{"action": [0, 2], "reward": [9.0]}, {"action": [3]}],
            point=OF_ACTIONS,
        ),
        InspectionError,
        "'action' is outside its space Discrete(3)",
    ),
    (
        inspected("range", columns=[{"x": [-1.0, 1.0, 1.5]}], within=(-1.0, 1.0), reaction="warn"),
        CoachWarning,
        "'x' is outside [-1, 1] in 1 of 3 rows ... the run continues",
    ),
    (
        inspected(
            "staleness", columns=[{"age": [10, 12]}], point=OF_AGES, oldest=10, reaction="warn"
        ),
        CoachWarning,
        "'age' is above 10 in 1 of 2 rows",
    ),
    (
        inspected("stats", columns=[{"reward": [1.0]}], column="rewrd"),
        UnknownNameError,
        "column 'rewrd' of 'batch'; did you mean 'reward'",
    ),
]
"""Calls, kinds of error or warning, and parts of the message in their order."""
PACKAGES = [
    *(
        (service, TrackerParameters(service=service).check, f"package {service} ... [{service}]")
        for service in ("wandb", "trackio", "mlflow")
    ),
    ("IPython.display", NotebookSink, "with IPython and matplotlib ... IPython.display"),
    ("matplotlib.figure", NotebookSink, "with IPython and matplotlib ... matplotlib.figure"),
]
"""Packages, calls that need them, and parts of the message without them."""


@pytest.mark.parametrize(("call", "arguments", "message"), PARAMETERS)
def test_telemetry_invalid_input_error(call, arguments, message):
    check_refused(lambda: call(**arguments), ParameterError, message)


@pytest.mark.parametrize(("call", "kind", "message"), INSPECTIONS)
def test_inspector_findings_error(call, kind, message):
    check_refused(call, kind, message)


@pytest.mark.parametrize(("package", "call", "message"), PACKAGES)
def test_telemetry_missing_package_error(monkeypatch, package, call, message):
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "IPython.display", ModuleType("IPython.display"))
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    check_refused(call, ConfigurationError, message)
