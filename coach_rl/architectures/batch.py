"""What a gradient step takes in and gives out."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from torch import Tensor

Batch = TypeVar("Batch")
"""What a loss learns from: a NamedTuple of tensors [B, ...], of dicts of tensors, and of None."""
Numbers = dict[str, Tensor]
"""Named scalars or values per sample."""
Loss = Callable[[Tensor, Batch, Numbers], tuple[Tensor, Numbers]]
"""(flat parameters [P], batch, scalars) to (loss, metrics); pure.

Metrics without axes are averaged over steps. Metrics [B, ...] belong to the samples: the losses of
later objectives find them among their scalars, and a step returns them.
"""


class StepResult(NamedTuple):
    """What a gradient step says about itself."""

    names: tuple[str, ...]
    """Names of the metrics that are averaged over steps."""
    metrics: Tensor
    """Their values, [M]."""
    per_sample: Numbers
    """Metrics of each sample, [B, ...]; valid until the next step."""


Step = Callable[[Batch, Tensor | None, Numbers], StepResult]
"""(data, index of the rows to learn from [B] or None for all, scalars) to the result."""


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
