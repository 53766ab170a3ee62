"""Functions of numpy arrays as functions of tensors, traced by torch's compiler.

Scripts, horizons, ends of options and symmetries that users wrote in numpy are exported so. A trace
is compared with its function, in other numbers of rows than it was made with.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.extensions.exporting.policies import Tensors

Argument = Tensor | Tensors
"""An argument of a function, [R, ...], or several of them by key."""
_TRACED = 5
_TRIED = (1, 2, 64)
"""Rows that a function is traced with, and rows in which its trace is compared with it."""
_LOGS = "torch._dynamo", "torch._guards", "torch.fx.experimental.symbolic_shapes"
"""Loggers of what the error has as well."""


class UntraceableError(Exception):
    """The reason why a function is no graph."""


def traced(
    function: Callable[..., Any], examples: Callable[[int], Sequence[Argument]]
) -> Callable[..., Any]:
    """A function of arrays [R, ...], or of arrays by key, as one of tensors.

    Args:
        function: Returns an array [R, ...], or arrays by key.
        examples: Arguments of R rows, by R.

    Raises:
        UntraceableError: It branches on values, loops over rows, draws random numbers, or uses what
            torch has no operation for.
    """
    given = examples(_TRACED)
    flat = _flat(given)
    calls: list[tuple[Callable[..., Any], Sequence[Any]]] = []

    def of_tensors(*tensors: Tensor) -> list[Tensor]:
        left = iter(tensors)
        arrays = [
            {key: next(left).numpy() for key in each}
            if isinstance(each, dict)
            else next(left).numpy()
            for each in given
        ]
        made = function(*arrays)
        parts = made.values() if isinstance(made, dict) else [made]
        return [torch.as_tensor(part).clone() for part in parts]  # never an argument itself

    def noted(graph: Any, _inputs: object) -> Callable[..., Any]:
        def run(*inputs: Any) -> Any:
            calls.append((graph, inputs))
            return graph(*inputs)

        return run

    # Torch keeps what it compiled with the code of a function, so each has a copy of its own.
    code = of_tensors.__code__.replace()
    own = FunctionType(code, globals(), code.co_name, None, of_tensors.__closure__)
    try:
        with _without_messages(), torch.no_grad():
            for each in flat:
                torch._dynamo.mark_dynamic(each, 0)  # the only size that may change
            torch.compile(own, backend=noted, fullgraph=True)(*flat)
    except Exception as error:  # of any kind: torch's, and the function's own
        raise UntraceableError(str(error).strip().partition("\n")[0][:200]) from error
    ((graph, inputs),) = calls
    places = [next((n for n, each in enumerate(flat) if each is one), None) for one in inputs]
    made = function(*map(_arrays, given))
    keys = [*made] if isinstance(made, dict) else None

    def run(*arguments: Argument) -> Any:
        tensors = _flat(arguments)
        rows = tensors[0].shape[0]
        taken = [
            tensors[place] if place is not None else rows if isinstance(each, int) else each
            for place, each in zip(places, inputs, strict=True)
        ]
        outputs = graph(*taken)
        return outputs[0] if keys is None else dict(zip(keys, outputs, strict=True))

    for count in _TRIED:
        _compare(function, run, examples(count))
    return run


def samples_of(space: spaces.Dict, rows: int) -> Tensors:
    """Observations to try a function with, [R, ...] each."""
    made: dict[str, Any] = {}
    for key, part in space.spaces.items():
        part.seed(0)
        made[key] = np.stack([np.asarray(part.sample()) for _ in range(rows)])
    return {key: torch.from_numpy(values) for key, values in made.items()}


def _flat(given: Sequence[Argument]) -> list[Tensor]:
    """The tensors of arguments in order."""
    nested = [[*each.values()] if isinstance(each, dict) else [each] for each in given]
    return [tensor for each in nested for tensor in each]


def _arrays(given: Argument) -> Any:
    """The arrays of an argument."""
    if isinstance(given, dict):
        return {key: part.numpy() for key, part in given.items()}
    return given.numpy()


def _compare(
    function: Callable[..., Any], run: Callable[..., Any], given: Sequence[Argument]
) -> None:
    """Raise UntraceableError where a trace and its function return different values."""
    wanted = function(*map(_arrays, given))
    made = run(*given)
    by_key: Mapping[str, Any] = wanted if isinstance(wanted, dict) else {"": wanted}
    for key, values in by_key.items():
        own = np.asarray(values)
        got = (made[key] if key else made).numpy()
        is_like = own.shape == got.shape and own.dtype == got.dtype
        if not is_like or not np.allclose(own, got, rtol=1e-5, atol=1e-6, equal_nan=True):
            raise UntraceableError(f"its graph computes other values in {len(own)} rows")


@contextmanager
def _without_messages() -> Iterator[None]:
    """Discard warnings and messages of torch's compiler."""
    loggers = [logging.getLogger(name) for name in _LOGS]
    before = [each.disabled for each in loggers]
    try:
        for each in loggers:
            each.disabled = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, was in zip(loggers, before, strict=True):
            each.disabled = was
