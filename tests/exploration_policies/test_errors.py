"""Exploration that is refused: a call, the kind of error, and parts of its message."""

import re
from functools import partial
from math import inf, nan

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl import (
    Boltzmann,
    Categorical,
    OrnsteinUhlenbeckNoise,
    TruncatedNormalNoise,
)
from coach_rl.core.clock import Clock, ConstantSchedule, LinearSchedule, PiecewiseSchedule
from coach_rl.core.errors import ParameterError, SpaceError
from coach_rl.exploration_policies import (
    EpsilonGreedy,
    EpsilonGreedyNoise,
    GaussianNoise,
    Greedy,
)
from coach_rl.extensions.exploration import EpsilonZGreedy, ParameterNoise

BOX = spaces.Box(-1, 3, (2,))
BUTTONS = spaces.Discrete(4)
BITS = spaces.MultiBinary(3)
TOO_HIGH = EpsilonGreedy(epsilon=PiecewiseSchedule(points=((0, 1.0), (10, 3.0), (20, 0.0))))

SPACES = [
    (EpsilonGreedy(), BOX, "EpsilonGreedy explores in a Discrete space, not in Box"),
    (Boltzmann(), BOX, "Boltzmann explores in a Discrete space"),
    (Categorical(), BITS, "Categorical explores in a Discrete space"),
    (GaussianNoise(), BUTTONS, "GaussianNoise explores in a Box, not in Discrete"),
    (TruncatedNormalNoise(), BUTTONS, "TruncatedNormalNoise explores in a Box"),
    (OrnsteinUhlenbeckNoise(), BUTTONS, "OrnsteinUhlenbeckNoise explores in a Box"),
    (EpsilonGreedyNoise(), BUTTONS, "EpsilonGreedyNoise explores in a Box"),
    (EpsilonZGreedy(), BITS, "EpsilonZGreedy explores in a Box, not in Multi"),
    (EpsilonZGreedy(noise=GaussianNoise()), BUTTONS, "GaussianNoise explores in a Box"),
    (EpsilonGreedyNoise(noise=EpsilonGreedy()), BOX, "EpsilonGreedy explores in a Discrete"),
    (Greedy(), spaces.MultiDiscrete([2, 3]), "Greedy explores in a Box, not in MultiDiscrete"),
    (GaussianNoise(), spaces.Box(-np.inf, 1, (2,)), "with finite bounds, got Box"),
    (GaussianNoise(), spaces.Box(0, 9, (2,), np.int64), "a flat Box of floats"),
    (Greedy(), spaces.Box(0, 1, (2, 2)), "a flat Box of floats"),
    (ParameterNoise(), BUTTONS, "ParameterNoise explores in a Box, not in Discrete"),
    (ParameterNoise(), spaces.Box(1, 1, (2,)), "nothing to explore"),
]
"""Parameters, spaces that they can't act in, and parts of the message."""
FIELDS = [
    (
        EpsilonGreedy,
        {"epsilon": ConstantSchedule(value=1.5)},
        "epsilon must lie in [0, 1], got 1.5",
    ),
    (EpsilonGreedy, {"epsilon": LinearSchedule(start=1, end=-0.1)}, "got -0.1"),
    (EpsilonGreedy, {"epsilon": ConstantSchedule(value=nan)}, "got nan"),
    (EpsilonGreedyNoise, {"epsilon": ConstantSchedule(value=2.0)}, "EpsilonGreedyNoise.epsilon"),
    (EpsilonZGreedy, {"epsilon": ConstantSchedule(value=2.0)}, "EpsilonZGreedy.epsilon"),
    (
        Boltzmann,
        {"temperature": ConstantSchedule(value=-1.0)},
        "0 or more and finite, got -1.0 at ... step 0",
    ),
    (GaussianNoise, {"scale": ConstantSchedule(value=-0.1)}, "scale must be 0 or more and finite"),
    (
        GaussianNoise,
        {"scale": ConstantSchedule(value=inf)},
        "finite, got inf at ... step 0",
    ),
    (TruncatedNormalNoise, {"scale": ConstantSchedule(value=-0.1)}, "TruncatedNormalNoise.scale"),
    (OrnsteinUhlenbeckNoise, {"theta": 0.5, "dt": 3}, "1 / theta = 2], got 3"),
    (
        OrnsteinUhlenbeckNoise,
        {"sigma": ConstantSchedule(value=-1.0)},
        "sigma must be 0 or more",
    ),
]
"""Classes of parameters, wrong fields, and parts of the message."""


def build(params, space):
    if isinstance(params, ParameterNoise):
        return params.build(space, perturbable=np.ones(5, np.bool_))
    return params.build(space)


def schedule_on_its_way():
    TOO_HIGH.build(BUTTONS).metrics(Clock(environment_steps=5))


CASES = [
    *((SpaceError, partial(build, params, space), message) for params, space, message in SPACES),
    *((ParameterError, partial(kind, **fields), message) for kind, fields, message in FIELDS),
    (ParameterError, schedule_on_its_way, "must lie in ... got 2.0 at environment step 5"),
]


@pytest.mark.parametrize(("kind", "call", "message"), CASES)
def test_exploration_invalid_input_error(kind, call, message):
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(".*".join(map(re.escape, message.split(" ... "))), text), text
