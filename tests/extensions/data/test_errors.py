"""Data sets that are refused: a call, the kind of error, and what its one line contains."""

import sys

import pytest
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from coach_rl.extensions.data.minari_data import write_minari
from coach_rl.extensions.data.prefill import DataSetParameters
from coach_rl.memories import ReplayMemoryParameters
from tests.extensions.data.test_minari_data import HAS_MINARI, SPACES, data, played
from tests.memories import replay_worlds
from tests.memories import test_sequences as sequences
from tests.memories.replay_worlds import build
from tests.refusals import check_refused


def filled_from(**wanted):
    """A call that writes a data set, and builds a memory filled from it."""

    def call(path):
        write_minari(played()[0].trajectories(), path, **SPACES)
        build(parts=data(path), **wanted)

    return call


def write_twice(path):
    shown = played()[0].trajectories()
    for _ in range(2):
        write_minari(shown, path, **SPACES)


C = ConfigurationError
DATA_SETS = [
    (
        filled_from(observed=spaces.Dict({"observation": spaces.Box(-1, 1, (5,))})),
        SpaceError,
        "observations {observation: Box(2,)}, the memory keeps {observation: Box(5,)}",
    ),
    (
        filled_from(observed=spaces.Dict({"camera": spaces.Box(-1, 1, (2,))})),
        SpaceError,
        "the memory keeps {camera: Box(2,)}",
    ),
    (
        filled_from(acted=spaces.Discrete(3)),
        SpaceError,
        "actions Box(1,), the memory keeps Discrete(3, start=0)",
    ),
    (filled_from(capacity=20), C, "each of its 2 rows holds 10 ... (20)"),
    *(
        (lambda _, name=name: build(parts=data(name)), C, message)
        for name, message in (
            ("nowhere/nothing-v0", "no data set 'nowhere/nothing-v0' ... minari download"),
            ("./nothing", "no data set './nothing'"),
            ("what is this", "'what is this' is not a Minari data set's id"),
            ("no-version", "'no-version' is not a Minari data set's id"),
        )
    ),
    (lambda path: write_twice(path), C, "exists already"),
    (lambda path: write_minari(build().trajectories(), path, **SPACES), C, "no transitions to wri"),
]
"""Calls with the path of a data set, kinds of error, and parts of the message in their order."""


@pytest.mark.skipif(not HAS_MINARI, reason="needs the packages minari and h5py")
@pytest.mark.parametrize(("call", "kind", "message"), DATA_SETS)
def test_data_sets_invalid_input_error(monkeypatch, tmp_path, call, kind, message):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    check_refused(lambda: call(str(tmp_path / "walk")), kind, message)


@pytest.mark.parametrize("missing", ["minari", "h5py"])
def test_data_sets_missing_package_error(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    message = f"package '{missing}' ... install -e \".[minari]\""
    check_refused(
        lambda: build(parts=data("pendulum/random-v0")),
        ConfigurationError,
        message,
    )


def test_data_set_beside_extras_is_refused():
    check_refused(
        lambda: ReplayMemoryParameters(parts=data("x-v0"), extras=("value",)),
        ParameterError,
        "exclude each other",
    )


def test_memory_of_sequences_refuses_a_data_set():
    parts = (DataSetParameters(source="D4RL/door/human-v2"),)
    with pytest.raises(ConfigurationError, match="draws=SequenceParameters exclude each other"):
        sequences.built(4, space=sequences.KEPT, **{**sequences.MEMORY, "parts": parts})


def test_memory_without_storage_reads_no_data_set():
    parts = (DataSetParameters(source="not/there-v0"),)
    memory = replay_worlds.build(storage="none", capacity=10**7, parts=parts)
    assert len(memory) == 0
