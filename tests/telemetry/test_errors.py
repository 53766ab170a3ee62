"""Input that telemetry refuses: a call, the kind of error, and what its one line contains."""

import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.graph_managers import bootstrap_interval, interquartile_mean
from coach_rl.graph_managers.statistics import SignalWindows
from tests.refusals import check_refused


def interval(scores, **changed):
    return bootstrap_interval(scores, interquartile_mean, rng=np.random.default_rng(0), **changed)


PARAMETERS = [
    (interval, {"scores": []}, "no scores"),
    (interval, {"scores": [1.0], "confidence": 1.0}, "between 0 and 1, got 1.0"),
    (interquartile_mean, {"scores": []}, "of no scores"),
    *(
        (SignalWindows().note, {"name": "gap", "values": values}, "signal 'gap' takes numbers, got")
        for values in ("fast", {"speed": 1.0}, None, [[1], [1, 2]])
    ),
]
"""Calls, their arguments, and parts of the message in their order."""


@pytest.mark.parametrize(("call", "arguments", "message"), PARAMETERS)
def test_telemetry_invalid_input_error(call, arguments, message):
    check_refused(lambda: call(**arguments), ParameterError, message)
