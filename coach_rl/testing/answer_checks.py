"""Checks of an environment's answers: their form, their ends, and the ownership of their memory."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.records import Action, Array, End, EnvResponse
from coach_rl.testing.responses import expect_equal, expect_same, expect_same_run, write_into
from coach_rl.testing.trial import ROWS, Trial, part_of, played, playing
from coach_rl.testing.violations import both_nan, equal_arrays, expect


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


def answers_are_not_overwritten(trial: Trial) -> None:
    """An answer stays as it was while the environment continues."""
    with trial.environment() as environment:
        kept, copies = [], []
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
    return deepcopy(action[path[:-1]] if isinstance(action, dict) else action)[0]


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
