"""What inspections, trackers and notebooks refuse: a call, the kind of error, parts of its line."""

import importlib.util
import sys
from dataclasses import replace
from functools import partial
from types import ModuleType

import numpy as np
import pytest
from gymnasium.spaces import Discrete

import coach_rl as rl
from coach_rl.core import parameter_class
from coach_rl.extensions.looking.data_points import DataPoint
from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.extensions.looking.inspector import InspectionError
from tests.extensions.looking.inspected_runs import SpoilsParameters, ddpg, manager, records_of
from tests.extensions.looking.test_inspector import BAD, inspect, inspector
from tests.refusals import check_refused

C, P, U = rl.ConfigurationError, rl.ParameterError, rl.UnknownNameError


class Elsewhere(rl.TickSource):
    """Ticks whose decisions are made in other processes."""

    acts_here = False


@parameter_class
class ElsewhereParameters(rl.SourceParameters):
    def build(self, context, clock):
        return replace(super().build(context, clock), source=Elsewhere())


def checked(*checks, columns, **options):
    """A call that inspects some columns, one after the other."""

    def call():
        at, _ = inspector(*checks, **options)
        for each in columns:
            inspect(at, **each)

    return call


def inspected(text, *given, **changes):
    return lambda: records_of(manager(text, *given, **changes))


class Shifted(rl.PointMassParameters):
    """A point mass whose observations are outside their space."""

    def build(self, *, num_envs):
        environment = super().build(num_envs=num_envs)
        recv = environment.recv

        def shifted():
            answer = recv()
            answer.observation["observation"] += np.float32(1e6)
            return answer

        environment.recv = shifted
        return environment


SPOILT = ddpg(units=(SpoilsParameters(),))
TEXTS = [
    *(
        (partial(parse_inspections, text), C, "is not an inspection; write POINT:CHECK")
        for text in (
            *("", ";", "batch", "batch:", ":nan", "batch:nan@", "a:nan@x", "a:b:c:d"),
            *("batch:nan=3", "batch:range=3", "batch:staleness=1..2"),
        )
    ),
    (partial(parse_inspections, "batch:stat"), U, "check 'stat' in 'batch:stat' ... 'stats'"),
    (partial(parse_inspections, "batch:nan:stp"), U, "'stp' in 'batch:nan:stp' ... 'stop'"),
    (partial(rl.InspectParameters, checks=("nans",)), P, "got ('nans',); did you mean 'nan'?"),
    (partial(rl.InspectParameters, checks=("nan",), within=(0.0, 1.0)), P, "within ... 'range'"),
]
TWO = [{"x": np.zeros((4, 2))}, {"x": np.zeros((8, 2))}]  # other numbers of rows are no change
OF_ACTIONS = DataPoint(name="memory", watch=lambda look: None, spaces={"action": Discrete(3)})
OF_AGES = DataPoint(name="batch", watch=lambda look: None, ages=("age",))
FINDINGS = [
    (
        checked("nan", columns=[{"x": [1.0], "flag": [True], "whole": [3]}, {"x": BAD}]),
        InspectionError,
        "'batch' of agent 'ddpg' of level 'low': 'x' is not finite in 2 of 3 rows",
    ),
    (
        checked("shape", columns=[*TWO, {"x": np.zeros((4, 3))}]),
        InspectionError,
        "was float64 (2,) before and is float64 (3,)",
    ),
    (
        checked("shape", columns=[*TWO, {"x": np.zeros((4, 3), np.float32)}]),
        InspectionError,
        "is float32 (3,) now",
    ),
    (
        checked(
            "range",
            columns=[{"action": [0, 2], "reward": [9.0]}, {"action": [3]}],
            point=OF_ACTIONS,
        ),
        InspectionError,
        "'action' is outside its space Discrete(3)",
    ),
    (
        checked("range", columns=[{"x": [-1.0, 1.0, 1.5]}], within=(-1.0, 1.0), reaction="warn"),
        rl.CoachWarning,
        "'x' is outside [-1, 1] in 1 of 3 rows ... the run continues",
    ),
    (
        checked(
            "staleness", columns=[{"age": [10, 12]}], point=OF_AGES, oldest=10, reaction="warn"
        ),
        rl.CoachWarning,
        "'age' is above 10 in 1 of 2 rows",
    ),
    (
        checked("stats", columns=[{"reward": [1.0]}], column="rewrd"),
        rl.UnknownNameError,
        "column 'rewrd' of 'batch'; did you mean 'reward'",
    ),
]
"""Calls, kinds of error or warning, and parts of the message in their order."""
RUNS = [
    (inspected("sampler:nan"), C, "no sampler to inspect, ... points here: batch, environment, f"),
    (inspected("btch:nan"), C, "unknown inspection point 'btch'; did you mean 'batch'"),
    (inspected("network:range"), C, "'network' has no space ... network:range=LOW..HIGH"),
    (inspected("memory:staleness"), C, "nothing is learned from at 'memory' ... inspect 'batch'"),
    (inspected("filter/actn:nan"), C, "point 'filter/actn'; did you mean 'filter/ac"),
    (inspected("batch/taret:nan"), C, "column 'taret' of 'batch'; did you mean 'target'"),
    (inspected("lwo.batch:nan"), U, "level 'lwo' in an inspection; allowed: main"),
    (
        inspected("sampler:nan; batch:nan; update:nan", SPOILT),
        InspectionError,
        "'sampler/spoils' ... : 'rewards' is not finite in 8 of 8 rows",
    ),
    (
        inspected("batch:nan; update:nan", SPOILT),
        InspectionError,
        "inspection of 'batch' ... : 'reward' is not finite",
    ),
    (
        inspected("environment:range", environment=Shifted()),
        InspectionError,
        "'observation/observation' is outside its space Box",
    ),
    (
        inspected("network:nan", source=ElsewhereParameters()),
        C,
        "'network' cannot be inspected ... act in other processes ... leave out the workers",
    ),
]
PACKAGES = [
    *(
        (service, rl.TrackerParameters(service=service).check, f"package {service} ... [{service}]")
        for service in ("wandb", "trackio", "mlflow")
    ),
    ("IPython.display", rl.NotebookSink, "with IPython and matplotlib ... IPython.display"),
    ("matplotlib.figure", rl.NotebookSink, "with IPython and matplotlib ... matplotlib.figure"),
]
"""Packages, calls that need them, and parts of the message without them."""


@pytest.mark.parametrize(("call", "kind", "message"), [*TEXTS, *FINDINGS, *RUNS])
def test_looking_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)


@pytest.mark.parametrize(("package", "call", "message"), PACKAGES)
def test_looking_missing_package_error(monkeypatch, package, call, message):
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "IPython.display", ModuleType("IPython.display"))
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    check_refused(call, rl.ConfigurationError, message)
