"""The trial that the checks of an environment run, and how they play it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from coach_rl.core.errors import ActionError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action, EnvResponse, IntArray
from coach_rl.core.spaces import actions_from_uniform, uniform_size
from coach_rl.testing.violations import ContractViolation

ROWS = 3
"""Number of rows that the checks drive."""
SEED_OF_TRIAL = -1
"""Stands for the trial's own seed."""


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

    @contextmanager
    def environment(self, rows: int = ROWS) -> Iterator[Environment]:
        """A fresh environment, closed afterwards."""
        environment = self.build(rows)
        try:
            yield environment
        finally:
            environment.close()

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
    try:
        environment.send(action, rows)
    except ActionError:
        return
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ContractViolation(
            f"{what} must be refused with ActionError, got {type(error).__name__}: {error}"
        ) from error
    raise ContractViolation(f"{what} must be refused with ActionError, but was accepted")
