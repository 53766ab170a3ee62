"""Checks of seeds: the same run again, and rows that don't depend on each other."""

import numpy as np

from coach_rl.testing.responses import difference, expect_equal, expect_same_run, one_row
from coach_rl.testing.trial import ROWS, Trial, part_of, played
from coach_rl.testing.violations import expect


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
        run, actions = played(many, trial), trial.actions(many)
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
