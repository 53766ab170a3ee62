"""A test before a run of whether a simulator can be restored by replaying its actions.

found = obstacle_to_restoring(lambda: parameters.build(num_envs=1))     # None: nothing found
"""

import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from coach_rl.core.errors import CheckpointError, CoachError, CoachWarning, RunError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action, EnvResponse
from coach_rl.core.spaces import actions_from_uniform, uniform_size

STEPS = 97
"""Steps of each of the probe's five parts; a prime number, which few episodes' lengths divide."""
PATIENCE_SECONDS = 10.0
"""Time for the probe; an environment so slow that it takes longer is not probed to the end."""
SEED = 20
"""Seed of the probe's episodes and actions."""


def obstacle_to_restoring(build: Callable[[], Environment]) -> str | None:
    """Reason why a simulator can't be restored by replaying its actions; None if none is found.

    One copy plays, starts another episode and is saved in the middle of one, unless none is longer
    than a step. A second copy loads that state, and both continue in turns with the same actions:
    an environment with randomness of its own, or with state that survives a reset, diverges. The
    probe has a fixed number of steps, so it does not find everything, and nothing in environments
    whose steps take 20 ms or more. Random streams of the process are restored, and warnings about
    faults are left to the run.

    Args:
        build: Makes a copy of one row; called twice.
    """
    with _global_streams_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CoachWarning)
        one, other = build(), build()
        try:
            return _difference(one, other)
        finally:
            one.close()
            other.close()


def _difference(one: Environment, other: Environment) -> str | None:
    actions = _random_actions(one)
    try:
        one.reset(seed=SEED)
        for _ in range(STEPS):
            _step(one, next(actions))
        one.reset()
        for step in range(1, 2 * STEPS):
            answer = _step(one, next(actions))
            if step >= STEPS and not answer.end.any():
                break
        state = one.state_dict()
    except CoachError:
        return None  # the run reports such errors itself
    try:
        other.load_state_dict(state)
        for _ in range(STEPS):
            action = next(actions)
            if not _equal(_step(one, action), _step(other, action)):
                return (
                    "the environment is not reproducible: replayed to where it was saved, it went "
                    "on differently; it (or a wrapper) uses randomness besides self.np_random, or "
                    "carries something over from earlier episodes"
                )
    except CheckpointError as error:
        return str(error)
    except CoachError:
        return None
    return None


def _random_actions(environment: Environment) -> Iterator[Action]:
    space, rng = environment.spaces.action, np.random.default_rng(SEED)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        yield actions_from_uniform(space, rng.random((1, uniform_size(space))))
    raise RunError("the environment is too slow to be probed")


def _step(environment: Environment, action: Action) -> EnvResponse:
    environment.send(action)
    return environment.recv()


def _equal(one: EnvResponse, other: EnvResponse) -> bool:
    """Return whether two answers agree in observations, rewards and ends."""
    pairs = [(one.reward, other.reward), (one.end, other.end)]
    for mine, theirs in (
        (one.observation, other.observation),
        (one.first_observation, other.first_observation),
    ):
        pairs += [(values, theirs[key]) for key, values in mine.items()]
    return all(left.tobytes() == right.tobytes() for left, right in pairs)


@contextmanager
def _global_streams_kept() -> Iterator[None]:
    """A context that restores the process's own random streams, which a preset may have seeded."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's stream
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002 - the user's stream
