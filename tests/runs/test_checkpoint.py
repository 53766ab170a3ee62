"""A checkpoint gives back every bit, and a damaged one says so."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy

from coach_rl.configuration.strict_json import sealed
from coach_rl.core.errors import CheckpointError, UnknownNameError
from coach_rl.core.seeding import generator, generator_state
from coach_rl.runs import checkpoint as checkpoints
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint


def round_trip(state: Any, folder: Path) -> Any:
    path = checkpoints.free_path(folder, 0)
    write_checkpoint(path, {"x": state}, {"note": 1})
    return read_checkpoint(path).state["x"]


def assert_same(left: Any, right: Any) -> None:
    """Equal to the bit, with the same types all the way down."""
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert list(left) == list(right)
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list | tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, torch.Tensor):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        flat = (part.contiguous().view(-1).view(torch.uint8) for part in (left, right))
        assert torch.equal(*flat)
    elif isinstance(left, np.ndarray | np.generic):
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes()
    elif isinstance(left, float):
        assert repr(left) == repr(right)  # shortest exact text; tells 0.0 from -0.0
    else:
        assert left == right


def test_round_trip_every_kind_of_leaf_is_exact(tmp_path):
    state = {
        "numbers": [1, -1, 1 << 127, True, False, None, 0.1, -0.0, math.inf, -math.inf, 1e-320],
        "text": ["", "ü\n", "$array"],
        "nested": {"deep": {"er": [{"a": torch.arange(3)}, [np.arange(2)]]}},
        "empty": {},
        "tuple": (1, (2.0, np.ones(2))),
        "scalar": np.float32(0.1),
        "zero_dimensional": np.array(3.5),
        "zero_size": np.zeros((0, 3), np.float32),
        "zero_size_tensor": torch.zeros(2, 0),
        "strided": np.arange(12.0).reshape(3, 4)[:, ::2],
        "transposed": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "read_only": np.broadcast_to(np.float64(2.0), (3,)),
        "strided_tensor": torch.arange(6).reshape(2, 3).T,
        "parameter": torch.nn.Parameter(torch.ones(2)).detach(),
        "rng": generator_state(generator(7, "a", 3)),
    }
    assert_same(round_trip(state, tmp_path)["rng"], state["rng"])
    back = round_trip(state, tmp_path)
    state["read_only"] = np.array(state["read_only"])
    assert_same(back, state)


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
        *("float16", "float32", "float64"),
    ],
)
def test_round_trip_numpy_dtype_is_kept(tmp_path, dtype):
    rng = np.random.default_rng(0)
    array = np.frombuffer(rng.bytes(64), dtype) if dtype != "bool" else rng.random(64) < 0.5
    assert_same(round_trip(array, tmp_path), np.array(array))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_round_trip_torch_dtype_is_kept(tmp_path, dtype):
    tensor = torch.randn(5, generator=torch.Generator().manual_seed(0)) * 3
    tensor = tensor.to(getattr(torch, dtype))
    assert_same(round_trip(tensor, tmp_path), tensor)


def test_write_checkpoint_refused_state_leaves_nothing(tmp_path):
    with pytest.raises(CheckpointError):
        round_trip(b"bytes", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_round_trip_tensors_that_share_memory_are_equal(tmp_path):
    flat = torch.arange(6.0)
    state = {"all": flat, "part": flat[2:4], "same": flat, "view": flat.view(2, 3)}
    assert_same(round_trip(state, tmp_path), state)


def test_round_trip_arrays_are_writable(tmp_path):
    back = round_trip({"a": np.zeros(2), "t": torch.zeros(2)}, tmp_path)
    back["a"] += 1
    back["t"] += 1
    assert back["a"].sum() == back["t"].sum() == 2


def test_round_trip_big_endian_values_are_kept(tmp_path):
    back = round_trip(np.arange(3, dtype=">i4"), tmp_path)
    assert back.tolist() == [0, 1, 2]


arrays = hypothesis_numpy.arrays(
    dtype=st.sampled_from([np.float32, np.int64, np.bool_, np.uint8]),
    shape=hypothesis_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
states = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), arrays),
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(st.text(max_size=3).filter(lambda key: key[:1] != "$"), below, max_size=3),
    ),
    max_leaves=6,
)


@given(states)
def test_round_trip_any_state_is_equal(tmp_path_factory, state):
    assert_same(round_trip(state, tmp_path_factory.mktemp("any")), state)


def other_version(path: Path) -> None:
    about = json.loads((path / "checkpoint.json").read_text())
    (path / "checkpoint.json").write_text(
        json.dumps(sealed(about | {"schema_version": 99, "coach_rl": "7.0"}))
    )


def test_find_checkpoint_by_name_and_pointer(tmp_path):
    for steps in (20, 100, 20):
        write_checkpoint(checkpoints.free_path(tmp_path, steps), {}, {})
    names = [path.name for path in checkpoints.list_checkpoints(tmp_path)]
    assert names == ["step_20", "step_20_2", "step_100"]
    checkpoints.point(tmp_path, "last", "step_100")
    checkpoints.point(tmp_path, "best", "step_20_2")
    assert checkpoints.find_checkpoint(tmp_path).name == "step_100"
    assert checkpoints.find_checkpoint(tmp_path, "best").name == "step_20_2"
    assert checkpoints.find_checkpoint(tmp_path, "step_20").name == "step_20"
    shutil.rmtree(tmp_path / "step_20")
    assert checkpoints.find_checkpoint(tmp_path, "step_20").name == "step_20_2"
    with pytest.raises(UnknownNameError, match="unknown checkpoint 'step_2'"):
        checkpoints.find_checkpoint(tmp_path, "step_2")
    checkpoints.point(tmp_path, "best", None)
    assert checkpoints.pointed(tmp_path, "best") is None


def test_list_checkpoints_leaves_out_unfinished_ones(tmp_path):
    (tmp_path / ".step_5.new-123").mkdir()
    assert checkpoints.list_checkpoints(tmp_path) == []
