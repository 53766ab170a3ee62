"""Waiting for other threads and processes, as long as the slowest machine takes."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 240.0
"""Seconds after which something will not happen any more; below the time limit of a test."""

Value = TypeVar("Value")


def wait_until(
    condition: Callable[[], Value], *, is_possible: Callable[[], bool] = lambda: True
) -> Value:
    """Wait for a condition and return its first true value.

    Args:
        condition: The condition.
        is_possible: Whether it can still come true, as while another process runs.
    """
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert is_possible() or condition(), "it cannot happen any more"
        assert time.monotonic() < end, f"it has not happened within {PATIENCE:.0f} s"
        time.sleep(0.01)
    return value
