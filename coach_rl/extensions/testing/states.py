"""Comparison of two saved states, for tests that stop and resume a run."""

from collections.abc import Iterator

import numpy as np

from coach_rl.core.state import Appended, State


def assert_same_state(one: State, other: State) -> None:
    """Raise `AssertionError` naming the first leaf that differs, in value, shape or dtype.

    Leaves whose name ends with `seconds` are left out: time differs, numbers must not.

    Args:
        one: What `state_dict` of an agent, a level or a graph manager returned.
        other: The same of another.
    """
    leaves, others = dict(flat_state(one)), dict(flat_state(other))
    if leaves.keys() != others.keys():
        raise AssertionError(f"only one state has {sorted(leaves.keys() ^ others.keys())}")
    for path, value in leaves.items():
        np.testing.assert_array_equal(
            np.asarray(value), np.asarray(others[path]), err_msg=path, strict=True
        )


def flat_state(state: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a state by path, those of time left out."""
    if isinstance(state, dict | list | tuple):
        items = state.items() if isinstance(state, dict) else enumerate(state)
        for key, value in items:
            yield from flat_state(value, f"{path}/{key}")
    elif isinstance(state, Appended):
        yield from flat_state({"first": state.first, "ends": state.ends}, path)
        for row, begin, columns in state.parts():
            yield from flat_state(dict(columns), f"{path}/{row}/{begin}")
    elif not path.endswith("seconds"):
        yield path, state
