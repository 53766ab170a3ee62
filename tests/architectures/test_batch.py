from typing import NamedTuple

import torch
from torch import Tensor

from coach_rl.architectures.gradient_step import mapped, named_tensors


class Inner(NamedTuple):
    c: Tensor


class Outer(NamedTuple):
    a: Tensor
    b: dict[str, Tensor]
    inner: Inner | None = None


BATCH = Outer(torch.arange(3), {"x": torch.arange(3, 6), "y/z": torch.arange(6, 9)})


def test_every_tensor_is_changed_and_the_kind_stays():
    batch = BATCH._replace(inner=Inner(torch.arange(9, 12)))
    rows = mapped(lambda column: column[[2, 0]], batch)
    assert isinstance(rows, Outer)
    assert isinstance(rows.inner, Inner)
    assert [rows.a.tolist(), rows.b["x"].tolist()] == [[2, 0], [5, 3]]
    assert [rows.b["y/z"].tolist(), rows.inner.c.tolist()] == [[8, 6], [11, 9]]
    assert batch.a.tolist() == [0, 1, 2]


def test_what_is_left_out_stays_so():
    assert mapped(torch.neg, BATCH).inner is None
    assert list(named_tensors(BATCH)) == ["a", "b/x", "b/y/z"]
    assert named_tensors(None) == {}


def test_tensors_are_named_by_their_path():
    batch = BATCH._replace(inner=Inner(torch.arange(9, 12)))
    assert list(named_tensors(batch)) == ["a", "b/x", "b/y/z", "inner/c"]
    assert named_tensors(batch)["inner/c"] is batch.inner.c
