"""The error of a broken promise, and the plain comparisons that find one."""

import numpy as np

from coach_rl.core.records import Array


class ContractViolation(AssertionError):
    """An environment broke a promise; the message names it."""


def expect(condition: bool, message: str) -> None:
    """Raise `ContractViolation` unless the condition holds."""
    if not condition:
        raise ContractViolation(message)


def equal_arrays(left: Array, right: Array) -> bool:
    """Return whether dtype, shape and every bit agree."""
    same_form = left.dtype == right.dtype and left.shape == right.shape
    return same_form and left.tobytes() == right.tobytes()


def both_nan(left: Array, right: Array) -> Array:
    """[R] where all elements are equal or NaN on both sides."""
    if not np.issubdtype(left.dtype, np.inexact):
        return np.zeros(len(left), np.bool_)
    equal = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.asarray(equal.reshape(len(left), -1).all(axis=1))
