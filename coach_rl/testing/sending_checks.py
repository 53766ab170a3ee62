"""Checks of sending and receiving: the right rows, and refusals that change nothing."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action, Array, Directive
from coach_rl.testing.answer_checks import check_form
from coach_rl.testing.responses import expect_same, expect_same_run, one_row
from coach_rl.testing.trial import ROWS, Trial, expect_refused, part_of, played
from coach_rl.testing.violations import expect


def recv_without_send_is_empty(trial: Trial) -> None:
    """Nothing sent, nothing answered: a response of zero rows, and nothing has moved."""
    with trial.environment() as environment:
        calm = played(environment, trial)
        environment.reset(seed=trial.seed)
        for _ in range(2):
            response = environment.recv()
            expect(
                len(response) == 0,
                f"recv answered for rows {response.rows.tolist()} though nothing was sent",
            )
            check_form(response, environment.spaces.observation)
        run = played(environment, trial, fresh=False)
        expect_same_run(calm[1:], run, "a run after recv with nothing sent")


def directive_equals_bare_action(trial: Trial) -> None:
    """A Directive and the bare action in it mean the same."""
    with trial.environment() as one, trial.environment() as other:
        one.reset(seed=trial.seed)
        other.reset(seed=trial.seed)
        for action in trial.actions(one):
            one.send(Directive(action=action))
            other.send(action, np.arange(ROWS))
            expect_same(one.recv(), other.recv(), "answers to a Directive and to its bare action")


def rows_and_actions_stay_together(trial: Trial) -> None:
    """Whatever the order and number of sends, each row gets its own action and keeps its answer."""
    with trial.environment() as environment:
        run, actions = played(environment, trial), trial.actions(environment)
        environment.reset(seed=trial.seed)
        rng = np.random.default_rng(trial.seed)
        for step, action in enumerate(actions):
            order = rng.permutation(ROWS)
            parts = [order[:1], order[1:]] if trial.partial_sends and step % 2 else [order]
            for part in parts:
                environment.send(part_of(action, part), part)
            response = environment.recv()
            expect(
                sorted(response.rows.tolist()) == list(range(ROWS)),
                f"rows {order.tolist()} were sent, recv answered for {response.rows.tolist()}",
            )
            back = np.argsort(response.rows)
            expect_same(
                response.rows_of(back),
                run[step + 1],
                f"step {step + 1} with rows sent as {parts}",
            )


def unsent_rows_stay_untouched(trial: Trial) -> None:
    """A row that is sent nothing doesn't move, however long the others continue."""
    if not trial.partial_sends:
        return
    with trial.environment() as environment:
        run, actions = played(environment, trial), trial.actions(environment)
        environment.reset(seed=trial.seed)
        for row in (1, 0, 2):
            rows = np.array([row])
            for step, action in enumerate(actions):
                environment.send(part_of(action, rows), rows)
                response = environment.recv()
                expect(
                    response.rows.tolist() == [row],
                    f"row {row} was sent, recv answered for {response.rows.tolist()}",
                )
                expect_same(
                    one_row(response, 0),
                    one_row(run[step + 1], row),
                    f"row {row} at step {step + 1} while the others waited",
                )


def bad_rows_are_refused(trial: Trial) -> None:
    """Sending to an open row, to one row twice or to no row is refused and changes nothing."""
    with trial.environment() as environment:
        calm = played(environment, trial)
        environment.reset(seed=trial.seed)
        run = []
        for action in trial.actions(environment):
            for rows in ([0, 0, 1], [0, 1, ROWS], [-1, 0, 1]):
                expect_refused(environment, action, np.array(rows), f"rows {rows}")
            environment.send(action)
            expect_refused(
                environment, part_of(action, np.array([1])), np.array([1]), "a row that is open"
            )
            run.append(environment.recv())
        expect_same_run(calm[1:], run, "a run with refused sends")


def bad_actions_are_refused(trial: Trial) -> None:
    """NaN, out-of-space and misshapen actions are refused and change nothing."""
    with trial.environment() as environment:
        calm = played(environment, trial)
        environment.reset(seed=trial.seed)
        run = []
        for action in trial.actions(environment):
            for what, wrong in _wrong_actions(environment, action):
                expect_refused(environment, wrong, None, what)
            environment.send(action)
            run.append(environment.recv())
        expect_same_run(calm[1:], run, "a run with refused actions")


def send_before_reset_is_refused(trial: Trial) -> None:
    """A fresh environment takes no action before its first reset."""
    with trial.environment() as environment:
        expect_refused(
            environment, trial.actions(environment)[0], None, "an action before the first reset"
        )


def _wrong_actions(environment: Environment, action: Action) -> list[tuple[str, Action]]:
    """Actions that must be refused, made from a good one."""
    space = environment.spaces.action
    if isinstance(space, spaces.Dict):
        assert isinstance(action, dict)
        key, part = next(iter(space.spaces.items()))
        wrong = [
            (f"{what} in '{key}'", {**action, key: bad})
            for what, bad in _wrong_arrays(part, action[key])
        ]
        missing = {other: values for other, values in action.items() if other != key}
        return [*wrong, (f"an action without '{key}'", missing)]
    assert not isinstance(action, dict)
    return [(what, bad) for what, bad in _wrong_arrays(space, action)]


def _wrong_arrays(space: object, action: Array) -> list[tuple[str, Array]]:
    wrong = [
        ("an action too few", action[:-1]),
        ("a misshapen action", np.stack([action, action], axis=-1)),
    ]
    if isinstance(space, spaces.Box):
        poisoned = action.astype(np.float64)
        poisoned.reshape(len(action), -1)[1, 0] = np.nan
        wrong.append(("a NaN action", poisoned))
        high = float(space.high.reshape(-1)[0])
        if np.isfinite(high):
            beyond = action.astype(np.float64)
            beyond.reshape(len(action), -1)[1, 0] = high + max(1.0, abs(high))
            wrong.append(("an action above its bound", beyond))
    else:
        beyond = action.copy()
        beyond.reshape(len(action), -1)[1, 0] = 100_000 if beyond.dtype.itemsize > 2 else 100
        wrong.append(("an action that does not exist", beyond))
    return wrong
