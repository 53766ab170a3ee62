"""Memories of sequences: what has to fit, and the length of a row."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.sequences import SequenceParameters
from coach_rl.memories.draws import SingleTransitions
from tests.memories.replay_worlds import build

SEEN = spaces.Dict({"x": spaces.Box(-np.inf, np.inf, (), np.float32)})
KEPT = spaces.Dict({**SEEN.spaces, HIDDEN_STATE: spaces.Box(-np.inf, np.inf, (2,), np.float32)})


def built(num_envs, *, space=KEPT, **parameters):
    return build(num_envs=num_envs, observed=space, acted=spaces.Discrete(10_000), **parameters)


MEMORY = {"capacity": 400, "draws": SequenceParameters(length=8)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": SingleTransitions()}, "SequenceParameters"),
        ({"space": SEEN}, "TorsoParameters.recurrence"),
        ({"n_step": 3}, "n_step=3"),
    ],
)
def test_memory_of_sequences_that_do_not_fit_its_columns_is_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        built(4, **{**MEMORY, **change})


def test_memory_of_sequences_holds_one_as_long_as_a_row():
    draws = SequenceParameters(length=6, burn_in=2)
    assert built(4, capacity=32, draws=draws).layout.row_capacity == 8
    with pytest.raises(ConfigurationError, match=r"8 transitions.*7 that are kept"):
        built(4, capacity=31, draws=draws)
