"""Checks of repetition: runs with one seed, rows alone and among others, and saved states.

Also of closing, which is harmless.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

import numpy as np

from coach_rl.core.errors import CheckpointError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action
from coach_rl.core.shown_text import shown_error
from coach_rl.extensions.testing.trial import (
    ROWS,
    ContractViolation,
    Trial,
    difference,
    expect,
    expect_equal,
    expect_refused,
    expect_same,
    expect_same_run,
    expect_same_state,
    one_row,
    part_of,
    played,
    stepped,
)


def same_seed_same_numbers(trial: Trial) -> None:
    """Two environments, and one environment reset twice, give equal runs from equal seeds."""
    with trial.environment() as one, trial.environment() as other:
        first = played(one, trial)
        expect_same_run(first, played(other, trial), "two runs with one seed")
        expect_same_run(first, played(one, trial), "a run repeated after reset with its seed")


def different_seeds_differ_if_anything_does(trial: Trial) -> None:
    """Other seeds give other runs if rows with different seeds differ."""
    with trial.environment() as environment:
        run = played(environment, trial)
        rows_differ = any(
            not np.array_equal(values[0], values[1]) for values in run[0].observation.values()
        )
        if not rows_differ:
            return  # the beginning is always the same
        other = played(environment, trial, seed=trial.seed + 1000)
        expect(
            difference(run[0], other[0]) != "",
            "another seed gave the same first observations, though they are random",
        )


def integer_seed_counts_up(trial: Trial) -> None:
    """An integer gives row i the seed `seed + i`; a sequence gives each row its own."""
    with trial.environment() as one, trial.environment() as other:
        listed = [trial.seed + row for row in range(ROWS)]
        expect_same_run(
            played(one, trial),
            played(other, trial, seed=listed),
            f"seed {trial.seed} and seeds {listed}",
        )
        if not trial.seeds_rows:
            return
        turned = played(other, trial, seed=listed[::-1])[0]
        whole = played(one, trial)[0]
        expect_equal(
            {key: values[::-1] for key, values in turned.observation.items()},
            whole.observation,
            "first observations of seeds in reverse order",
        )


def rows_live_alone_as_among_others(trial: Trial) -> None:
    """Row i of N lives as the only row of an environment with its seed."""
    if not trial.seeds_rows:
        return
    with trial.environment() as many:
        run = played(many, trial)
        actions = trial.actions(many)
    for row in range(ROWS):
        with trial.environment(1) as single:
            response = single.reset(seed=trial.seed + row)
            alone = [response]
            for action in actions:
                single.send(part_of(action, np.array([row])))
                alone.append(single.recv())
        among = [one_row(response, row) for response in run]
        lone = [one_row(response, 0) for response in alone]
        expect_same_run(lone, among, f"row {row} alone and among {ROWS}")


def no_seed_continues(trial: Trial) -> None:
    """`reset()` continues with the random streams: repeatable, and not from the start again."""
    with trial.environment() as one, trial.environment() as other:
        runs = []
        for environment in (one, other):
            first = played(environment, trial)
            runs.append((first, played(environment, trial, seed=None)))
        expect_same_run(runs[0][1], runs[1][1], "two runs after reset() without a seed")
        unlike = played(one, trial, seed=trial.seed + 1000)
        random = any(difference(a, b) for a, b in zip(runs[0][0], unlike, strict=True))
        again = not any(difference(a, b) for a, b in zip(*runs[0], strict=True))
        expect(
            not (random and again),
            "reset() without a seed repeated the run of the last seed; "
            "it must continue the random streams",
        )


def state_round_trip(trial: Trial) -> None:
    """A fresh environment with the saved state continues exactly as the saved one does."""
    if not trial.saves:
        return
    for saved_at in (0, trial.steps // 3, trial.steps // 2 + 1):
        with _begun(trial, saved_at) as (one, other, actions):
            state = one.state_dict()
            went_on = [*stepped(one, actions), one.reset()]
            other.load_state_dict(state)
            resumed = [*stepped(other, actions), other.reset()]
            expect_same_run(went_on, resumed, f"a run resumed from step {saved_at}")


def state_replaces_everything(trial: Trial) -> None:
    """Loading into an environment in the midst of another run leaves nothing of that run."""
    if not trial.saves:
        return
    half = trial.steps // 2
    with _begun(trial, half) as (one, other, actions):
        state = one.state_dict()
        other.reset(seed=trial.seed + 1000)
        stepped(other, trial.actions(one, stream=1)[: half + 2])
        other.send(actions[0])
        other.load_state_dict(state)
        expect(len(other.recv()) == 0, "a decision that was open survived load_state_dict")
        expect_same_run(
            stepped(one, actions), stepped(other, actions), "a run resumed in a used environment"
        )


def open_decisions_are_saved(trial: Trial) -> None:
    """Decisions sent but not answered when the state was saved are answered by the copy as well."""
    if not trial.saves:
        return
    rows = np.array([2, 0]) if trial.partial_sends else np.arange(ROWS)
    with _begun(trial, trial.steps // 2) as (one, other, (action, *actions)):
        one.send(part_of(action, rows), rows)
        try:
            state = one.state_dict()
        except CheckpointError as error:
            raise ContractViolation(f"a row was open, so nothing was saved: {error}") from error
        other.load_state_dict(state)
        expect_refused(other, part_of(action, rows[:1]), rows[:1], "a row saved open")
        one_run = [one.recv(), *stepped(one, actions)]
        other_run = [other.recv(), *stepped(other, actions)]
        expect_same_run(one_run, other_run, "a run resumed with open decisions")


def saved_before_reset(trial: Trial) -> None:
    """A state saved before the first reset leaves an environment that waits for its reset."""
    if not trial.saves:
        return
    with trial.environment() as one, trial.environment() as other:
        other.reset(seed=trial.seed)
        other.load_state_dict(one.state_dict())
        expect_refused(other, trial.actions(one)[0], None, "an action before the reset")
        expect_same(
            one.reset(seed=trial.seed), other.reset(seed=trial.seed), "the first resets of both"
        )


def state_shares_no_memory(trial: Trial) -> None:
    """A saved state is a tree of plain values, stays as it is, and is not needed once loaded."""
    if not trial.saves:
        return
    with _begun(trial, trial.steps // 2) as (one, other, actions):
        state = one.state_dict()
        _check_tree(state, "state")
        copy = deepcopy(state)
        went_on = stepped(one, actions)
        expect_same_state(copy, state, "a saved state changed while the environment continued")
        other.load_state_dict(state)
        _write_into_tree(state)
        expect_same_run(went_on, stepped(other, actions), "a run whose loaded state was written to")


def close_twice(trial: Trial) -> None:
    """`close` is harmless before any reset, and when repeated."""
    unused = trial.made(1)
    unused.close()
    environment = trial.made(ROWS)
    environment.reset(seed=trial.seed)
    for _ in range(2):
        try:
            environment.close()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ContractViolation(f"close raised {shown_error(error)}") from error


@contextmanager
def _begun(trial: Trial, steps: int) -> Iterator[tuple[Environment, Environment, list[Action]]]:
    """An environment after so many steps of a run, a fresh one, and the actions that follow."""
    with trial.environment() as one, trial.environment() as other:
        actions = trial.actions(one)
        one.reset(seed=trial.seed)
        stepped(one, actions[:steps])
        yield one, other, actions[steps:]


def _check_tree(value: object, path: str) -> None:
    if isinstance(value, dict):
        for key, part in value.items():
            expect(isinstance(key, str), f"{path} has the key {key!r}; keys must be strings")
            _check_tree(part, f"{path}/{key}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_tree(part, f"{path}[{index}]")
    elif isinstance(value, np.ndarray):
        expect(not value.dtype.hasobject, f"{path} is an array of objects; only numbers are saved")
    else:
        expect(
            value is None or isinstance(value, (bool, int, float, str, np.generic)),
            f"{path} is a {type(value).__name__}; a state holds "
            "arrays, numbers, strings, booleans, None, lists and dicts",
        )


def _write_into_tree(value: object) -> None:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _write_into_tree(part)
        value.clear()
    elif isinstance(value, np.ndarray) and value.flags.writeable:
        value[...] = np.ones((), value.dtype)
