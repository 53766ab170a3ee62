"""Checks of an environment's exchange: the right rows, refusals that change nothing, and answers.

Answers are checked for their form, their ends, and the ownership of their memory.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import ACTION_MASK, Action, Array, Directive, End, EnvResponse
from coach_rl.extensions.testing.allowed_actions import AllowedActions, has_masks, mask_of
from coach_rl.extensions.testing.trial import (
    ROWS,
    Trial,
    both_nan,
    equal_arrays,
    expect,
    expect_equal,
    expect_refused,
    expect_same,
    expect_same_run,
    one_row,
    part_of,
    played,
    playing,
    write_into,
)


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
        run = played(environment, trial)
        actions = trial.actions(environment)
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
        run = played(environment, trial)
        actions = trial.actions(environment)
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


def reset_answers_for_all_rows(trial: Trial) -> None:
    """After reset: rows 0 to N-1, duration and reward 0, no end, both observations equal."""
    with trial.environment() as environment:
        expect(
            environment.num_envs == ROWS, f"num_envs is {environment.num_envs}, built with {ROWS}"
        )
        response = environment.reset(seed=trial.seed)
        expect(
            response.rows.tolist() == list(range(ROWS)),
            f"reset answered for rows {response.rows.tolist()}, wanted all of {ROWS} in order",
        )
        for name in ("duration", "reward", "end", "terminated", "truncated"):
            values = getattr(response, name)
            expect(not values.any(), f"after reset '{name}' must be 0 everywhere, got {values}")
        expect_equal(
            response.observation,
            response.first_observation,
            "after reset, observation and first_observation",
        )


def answers_have_the_promised_form(trial: Trial) -> None:
    """Every array has R rows, the promised dtype, and observations lie in their spaces."""
    with trial.environment() as environment:
        shown = environment.spaces.observation
        expect(
            isinstance(shown, spaces.Dict)
            and not any(isinstance(part, spaces.Dict) for part in shown.spaces.values()),
            f"spaces.observation must be a flat Dict of spaces, got {shown}",
        )
        for response in played(environment, trial):
            check_form(response, shown)


def info_is_aligned(trial: Trial) -> None:
    """Every info array has one entry per answered row, whichever rows were sent."""
    with trial.environment() as environment:
        for response in played(environment, trial):
            _check_info(response)
        if not trial.partial_sends:
            return
        actions = trial.actions(environment)
        environment.send(part_of(actions[0], np.array([1])), np.array([1]))
        _check_info(environment.recv())


def info_is_that_of_the_step(trial: Trial) -> None:
    """The info is what the row's own environment gave in the step, also where the episode ended.

    Known only for rows that are Gymnasium environments.
    """
    if trial.single is None:
        return
    with trial.environment(1) as environment, closing(trial.single()) as single:
        environment.reset(seed=trial.seed)
        single.reset(seed=trial.seed)
        for step, action in enumerate(trial.actions(environment, rows=1), start=1):
            environment.send(action)
            answer = environment.recv()
            if isinstance(environment, AllowedActions):
                action = environment.last_sent
            *_, terminated, truncated, info = single.step(_nested(action, single.action_space))
            for name, value in _flat(info):
                found = answer.info.get(name)
                expect(
                    found is None or np.array_equal(found[0], value),
                    f"the info '{name}' of step {step} is {value}, the answer has {found}",
                )
            if terminated or truncated:
                single.reset()


def duration_counts_steps(trial: Trial) -> None:
    """A simulator's answer covers one step."""
    with trial.environment() as environment:
        for response in played(environment, trial)[1:]:
            expect(
                bool((response.duration == 1).all()),
                f"a simulator's answer covers 1 step, got duration {response.duration}",
            )


def end_bits_agree(trial: Trial) -> None:
    """`end` holds TERMINATED and TRUNCATED exactly where the flags are set."""
    with trial.environment() as environment:
        responses = played(environment, trial)
        for response in responses:
            bits = response.terminated * int(End.TERMINATED) | response.truncated * int(
                End.TRUNCATED
            )
            expect(
                np.array_equal(response.end, bits),
                f"end is {response.end}, but terminated {response.terminated} and truncated "
                f"{response.truncated} make {bits}",
            )
        _require_ends(responses, trial)


def last_observation_is_the_true_one(trial: Trial) -> None:
    """The observations differ only where an episode ended, and there the last is not the first."""
    with trial.environment() as environment:
        responses = played(environment, trial)
        ended_differ = False
        for response in responses:
            ended = response.end != 0
            for key, values in response.observation.items():
                first = response.first_observation[key]
                differs = (values != first).reshape(len(values), -1).any(axis=1)
                differs &= ~both_nan(values, first)
                expect(
                    not (differs & ~ended).any(),
                    f"first_observation['{key}'] differs from observation where no episode ended",
                )
                ended_differ |= bool((differs & ended).any())
        _require_ends(responses, trial)
        expect(
            ended_differ,
            "observation equals first_observation at every episode's end: the true last "
            "observation was replaced by the next episode's first",
        )


def masks_allow_an_action(trial: Trial) -> None:
    """Masks are 0 or 1 and allow an action of each choice wherever the episode isn't terminated."""
    with trial.environment() as environment:
        if not has_masks(environment):
            return
        begins = np.cumsum((0, *choice_sizes(environment.spaces.action)[:-1]))
        for step, response in enumerate(playing(environment, trial)):
            shown = {"first observation": (response.first_observation, np.ones(len(response)) > 0)}
            shown["observation"] = (response.observation, ~response.terminated)
            for name, (observation, counts) in shown.items():
                values = observation[ACTION_MASK]
                expect(
                    bool(((values == 0) | (values == 1)).all()),
                    f"'{ACTION_MASK}' holds 0 and 1, got {np.unique(values)[:5]}",
                )
                allowed = np.logical_or.reduceat(mask_of(observation), begins, axis=1)
                stuck = response.rows[counts & ~allowed.all(axis=1)]
                expect(
                    not len(stuck),
                    f"the {name} of rows {stuck.tolist()} allows no action after step {step}; "
                    "allow one, or end the episode as terminated before such a state",
                )


def answers_are_not_overwritten(trial: Trial) -> None:
    """An answer stays as it was while the environment continues."""
    with trial.environment() as environment:
        kept = []
        copies = []
        for response in playing(environment, trial):
            kept.append(response)
            copies.append(deepcopy(response))
        for step, (response, copy) in enumerate(zip(kept, copies, strict=True)):
            expect_same(response, copy, f"the answer to step {step}, then and later")


def sent_actions_stay_as_they_are(trial: Trial) -> None:
    """The arrays of a sent action are the sender's: nothing is written into them."""
    with trial.environment() as environment:
        environment.reset(seed=trial.seed)
        for action in trial.actions(environment):
            copy = deepcopy(action)
            environment.send(action)
            environment.recv()
            pairs = zip(_parts(copy), _parts(action), strict=True)
            expect(
                all(equal_arrays(sent, now) for sent, now in pairs),
                f"the action {copy} was sent, and its arrays were changed to {action}",
            )


def answers_can_be_written_to(trial: Trial) -> None:
    """Writing into an answer or a sent action reaches neither the environment nor other answers.

    Within one answer the two observations may share memory: nothing is written between them.
    """
    with trial.environment() as environment:
        calm = [deepcopy(response) for response in played(environment, trial)]
        run = [environment.reset(seed=trial.seed)]
        copies = [deepcopy(run[0])]
        write_into(run[0])
        for action in trial.actions(environment):
            environment.send(action)
            for part in _parts(action):
                part[...] = 0
            run.append(environment.recv())
            copies.append(deepcopy(run[-1]))
            write_into(run[-1])
        expect_same_run(calm, copies, "a run whose answers and actions were written to")


def check_form(response: EnvResponse, shown: spaces.Dict) -> None:
    """Shapes, dtypes, keys and spaces of an answer."""
    count = len(response.rows)
    kinds: dict[str, type] = {
        "rows": np.int64,
        "reward": np.floating,
        "terminated": np.bool_,
        "truncated": np.bool_,
        "end": np.uint8,
        "duration": np.int64,
    }
    for name, kind in kinds.items():
        values = getattr(response, name)
        expect(
            isinstance(values, np.ndarray)
            and values.shape == (count,)
            and np.issubdtype(values.dtype, kind),
            f"'{name}' must be an array of {kind.__name__} with shape ({count},), got {values!r}",
        )
    for name in ("observation", "first_observation"):
        observation = getattr(response, name)
        expect(
            set(observation) == set(shown.spaces),
            f"{name} has the keys {sorted(observation)}, its space {sorted(shown.spaces)}",
        )
        for key, space in shown.spaces.items():
            values = observation[key]
            expect(
                values.shape == (count, *(space.shape or ())) and values.dtype == space.dtype,
                f"{name}['{key}'] is {values.dtype} of shape {values.shape}, its space is "
                f"{space.dtype} of shape {(count, *(space.shape or ()))}",
            )
            for row, value in enumerate(values):
                expect(
                    space.contains(value),
                    f"{name}['{key}'] of row {row} lies outside {space}: {value}",
                )


def _parts(action: Action) -> list[Array]:
    return list(action.values()) if isinstance(action, dict) else [action]


def _nested(action: Action, space: spaces.Space[Any], path: str = "") -> Any:
    """A copy of the first row's action in the form of a Gymnasium environment."""
    if isinstance(space, spaces.Dict):
        return {key: _nested(action, part, f"{path}{key}/") for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        numbered = enumerate(space.spaces)
        return tuple(_nested(action, part, f"{path}{number}/") for number, part in numbered)
    leaf = deepcopy(action[path[:-1]] if isinstance(action, dict) else action)[0]
    return np.asarray(leaf) if isinstance(space, spaces.Box) else leaf


def _flat(info: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The entries of an info by their flat names."""
    for key, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


def _check_info(response: EnvResponse) -> None:
    for name, values in response.info.items():
        expect(
            isinstance(values, np.ndarray) and values.shape[:1] == (len(response),),
            f"info['{name}'] must be an array with one entry for each of {len(response)} rows, "
            f"got {values!r}",
        )


def _require_ends(responses: list[EnvResponse], trial: Trial) -> None:
    expect(
        any(response.end.any() for response in responses),
        f"no episode ended within {trial.steps} steps, so ends were not checked; "
        "raise `steps` or build with a shorter time limit",
    )
