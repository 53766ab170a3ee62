"""Batches of any NamedTuple, treated as one value."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from torch import Tensor

from coach_rl.core.records import Array

Batch = TypeVar("Batch")
"""The input of a loss: a NamedTuple of tensors [B, ...], of dicts of tensors, and of None."""


def mapped(change: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """The batch with every tensor changed."""
    return _mapped(change, batch)  # type: ignore[return-value]  # the same kind comes out


def named_tensors(batch: object, name: str = "") -> dict[str, Tensor]:
    """Every tensor of a batch by its path, e.g. `action` or `observation/position`.

    Args:
        batch: A NamedTuple or dict, which may hold others, or None where something is left out.
        name: Path of the batch itself.
    """
    if isinstance(batch, Tensor):
        return {name: batch}
    prefix = f"{name}/" if name else ""
    return {
        path: tensor
        for key, part in _parts(batch).items()
        for path, tensor in named_tensors(part, f"{prefix}{key}").items()
    }


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """The tensors as arrays; waits for the device."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _mapped(change: Callable[[Tensor], Tensor], value: object) -> object:
    if isinstance(value, Tensor):
        return change(value)
    if value is None:
        return None
    parts = {key: _mapped(change, part) for key, part in _parts(value).items()}
    return parts if isinstance(value, dict) else type(value)(**parts)


def _parts(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    assert isinstance(value, tuple), f"a batch holds tensors, not {type(value).__name__}"
    return dict(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]  # NamedTuple
