"""The trial that the checks of an environment run: how they play it and compare its answers.

Comparisons are bit by bit; a promise that is broken is a `ContractViolation`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import gymnasium
import numpy as np

from coach_rl.core.errors import ActionError
from coach_rl.core.interfaces import Environment
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.records import Action, Array, EnvResponse, IntArray, Observation
from coach_rl.core.shown_text import shown_error
from coach_rl.core.state import State
from coach_rl.extensions.testing.allowed_actions import with_allowed_actions
from coach_rl.extensions.testing.states import assert_same_state

ROWS = 3
"""Number of rows that the checks drive."""
SEED_OF_TRIAL = -1
"""Stands for the trial's own seed."""
_PRESENT = np.ones(1, np.bool_)


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


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The environment and settings of the checks."""

    build: Callable[[int], Environment]
    """Makes a fresh environment with that many rows."""
    steps: int = 60
    """Steps per row; an episode must end within them."""
    seed: int = 7
    """Seed of the environment and of the actions."""
    partial_sends: bool = True
    """True if rows can be sent to one by one; False for a simulator that steps all rows at once."""
    saves: bool = True
    """True if the state can be saved."""
    seeds_rows: bool = True
    """True if each row has a random stream of its own; False if rows share one."""
    single: Callable[[], gymnasium.Env[Any, Any]] | None = None
    """Makes the Gymnasium environment of one row; None for a simulator of another kind."""

    def made(self, rows: int) -> Environment:
        """A fresh environment; one with action masks gets allowed actions alone."""
        return with_allowed_actions(self.build(rows))

    @contextmanager
    def environment(self, rows: int = ROWS) -> Iterator[Environment]:
        """A fresh environment, closed afterwards."""
        with closing(self.made(rows)) as environment:
            yield environment

    def actions(self, environment: Environment, rows: int = ROWS, stream: int = 0) -> list[Action]:
        """One random action per step for that many rows, [rows, ...] each."""
        space = environment.spaces.action
        rng = np.random.default_rng([self.seed, stream])
        size = uniform_size(space)
        return [actions_from_uniform(space, rng.random((rows, size))) for _ in range(self.steps)]


Check = Callable[[Trial], None]
"""Raises `ContractViolation` when the promise in its name is broken."""


def playing(environment: Environment, trial: Trial) -> Iterator[EnvResponse]:
    """The answer to a reset, then to each step with all rows, as they come."""
    yield environment.reset(seed=trial.seed)
    for action in trial.actions(environment):
        environment.send(action)
        yield environment.recv()


def played(
    environment: Environment,
    trial: Trial,
    *,
    seed: int | Sequence[int] | None = SEED_OF_TRIAL,
    fresh: bool = True,
) -> list[EnvResponse]:
    """A whole run; without `fresh` it continues without a reset."""
    given = trial.seed if seed == SEED_OF_TRIAL else seed
    start = [environment.reset(seed=given)] if fresh else []
    return start + stepped(environment, trial.actions(environment))


def stepped(environment: Environment, actions: list[Action]) -> list[EnvResponse]:
    """The answers to these actions of all rows."""
    responses = []
    for action in actions:
        environment.send(action)
        responses.append(environment.recv())
    return responses


def part_of(action: Action, rows: IntArray) -> Action:
    """A copy of the actions of these rows."""
    if isinstance(action, dict):
        return {key: values[rows] for key, values in action.items()}
    return np.asarray(action[rows])


def expect_refused(
    environment: Environment, action: Action, rows: IntArray | None, what: str
) -> None:
    """Violation unless sending this raises `ActionError`."""
    message = f"{what} must be refused with ActionError"
    refused(lambda: environment.send(action, rows), ActionError, message)


def refused(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    """Violation unless the call raises an error of this kind."""
    try:
        call()
    except kind:
        return
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ContractViolation(f"{message}, got {shown_error(error)}") from error
    raise ContractViolation(f"{message}, but it was accepted")


def expect_equal(left: Observation, right: Observation, what: str) -> None:
    """Violation unless two observations are equal."""
    expect(set(left) == set(right), f"{what} have the keys {sorted(left)} and {sorted(right)}")
    for key, values in left.items():
        expect(
            equal_arrays(values, right[key]), f"{what} differ in '{key}': {values} and {right[key]}"
        )


def expect_same(one: EnvResponse, other: EnvResponse, what: str) -> None:
    """Violation unless two answers are equal."""
    found = difference(one, other)
    expect(not found, f"{what} must be equal, but differ in {found}")


def expect_same_run(one: list[EnvResponse], other: list[EnvResponse], what: str) -> None:
    """Violation unless two runs are equal, answer by answer."""
    for step, (left, right) in enumerate(zip(one, other, strict=True)):
        expect_same(left, right, f"{what} (answer {step})")


def difference(one: EnvResponse, other: EnvResponse) -> str:
    """The name of the first array that differs; empty when none does."""
    left, right = _arrays(one), _arrays(other)
    if left.keys() != right.keys():
        return f"their keys: only one has {', '.join(sorted(left.keys() ^ right.keys()))}"
    different = (name for name in left if not equal_arrays(left[name], right[name]))
    return next((f"{name}: {left[name]} and {right[name]}" for name in different), "")


def _arrays(response: EnvResponse) -> dict[str, Array]:
    """The arrays of a response by name."""
    found: dict[str, Array] = {}
    for field in fields(response):
        match getattr(response, field.name):
            case dict() as parts:
                found |= {f"{field.name}['{key}']": values for key, values in parts.items()}
            case np.ndarray() as values:
                found[field.name] = values
    return found


def expect_same_state(one: State, other: State, message: str) -> None:
    """Raise `ContractViolation` with the path of the first leaf that differs."""
    try:
        assert_same_state(one, other)
    except AssertionError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        where = next((line for line in lines if line.startswith(("/", "only one"))), lines[0])
        raise ContractViolation(f"{message}: {where}") from error


def one_row(response: EnvResponse, position: int) -> EnvResponse:
    """One row of a response as if it were row 0 and alone.

    Rows that `_<name>` in the info marks as without `<name>` have none; the masks are removed.
    """
    single = response.rows_of(np.array([position]))
    info = {
        name: values
        for name, values in single.info.items()
        if not (name.startswith("_") and name[1:] in single.info)
        and single.info.get(f"_{name}", _PRESENT).all()
    }
    return replace(single, rows=np.zeros(1, np.int64), info=info)


def write_into(response: EnvResponse) -> None:
    """Write into every array of a response that can be written to."""
    for values in _arrays(response).values():
        if values.flags.writeable:
            values[...] = np.ones((), values.dtype)
