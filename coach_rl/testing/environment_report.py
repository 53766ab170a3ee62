"""A readable report on an environment: one finding per promise.

for finding in examine(build, obstacle_to_restoring=None):
    print(finding.verdict, finding.subject, finding.text)
"""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import CoachError, CoachWarning
from coach_rl.core.interfaces import Environment
from coach_rl.core.spaces import Space, actions_from_uniform, has_finite_width, uniform_size
from coach_rl.testing.answer_checks import (
    answers_are_not_overwritten,
    end_bits_agree,
    last_observation_is_the_true_one,
    reset_answers_for_all_rows,
    sent_actions_stay_as_they_are,
)
from coach_rl.testing.environment_contract import ENVIRONMENT_CHECKS
from coach_rl.testing.saving_checks import (
    close_twice,
    open_decisions_are_saved,
    saved_before_reset,
    state_replaces_everything,
    state_round_trip,
    state_shares_no_memory,
)
from coach_rl.testing.seed_checks import rows_live_alone_as_among_others, same_seed_same_numbers
from coach_rl.testing.sending_checks import (
    send_before_reset_is_refused,
    unsent_rows_stay_untouched,
)
from coach_rl.testing.trial import Check, Trial
from coach_rl.testing.violations import ContractViolation

EPISODE_STEPS = 10_000
"""Steps in which an episode is expected to end."""
LONG = 500
"""Steps of an episode that the checks don't play to its end."""
SECONDS = 5.0
"""Time that the search for an episode's end takes at most."""
WITHOUT_SEEDS = {
    *ENVIRONMENT_CHECKS[: ENVIRONMENT_CHECKS.index(same_seed_same_numbers)],
    send_before_reset_is_refused,
    answers_are_not_overwritten,
    sent_actions_stay_as_they_are,
    close_twice,
}
"""Checks that mean something where no two runs are equal."""
SAVING = {
    state_round_trip,
    state_replaces_everything,
    open_decisions_are_saved,
    saved_before_reset,
    state_shares_no_memory,
}
ENDING = {end_bits_agree, last_observation_is_the_true_one}
STEPLESS = {reset_answers_for_all_rows, send_before_reset_is_refused, close_twice}
ROW_BY_ROW = {rows_live_alone_as_among_others, unsent_rows_stay_untouched}
ADVICE = {
    "same_seed_same_numbers": "draw everything random from self.np_random, which "
    "super().reset(seed=seed) seeds; not from random or np.random",
    "rows_live_alone_as_among_others": "environments share something: a module's variable, a class "
    "attribute or a global random stream; keep it in self",
    "no_seed_continues": "reset() without a seed must not seed again",
    "integer_seed_counts_up": "a row's episodes must depend on its own seed alone",
    "answers_have_the_promised_form": "make the space as wide as what is shown, or clip; return "
    "the space's dtype and shape",
    "last_observation_is_the_true_one": "step must return the observation that it led to, and "
    "leave the reset to the caller",
    "answers_are_not_overwritten": "return a copy of an array that is changed in place",
    "state_round_trip": "state must live in self and be set again by reset",
}
"""Remedies of broken promises, where the violation does not name them."""

Verdict = Literal["passed", "warned", "failed"]


@dataclass(frozen=True)
class Finding:
    """The result of trying one promise."""

    verdict: Verdict
    subject: str
    """The promise, in words."""
    text: str
    """The observation and the remedy; empty if there are none."""


def examine(
    build: Callable[[int], Environment],
    *,
    build_short: Callable[[int], Environment] | None = None,
    obstacle_to_restoring: str | None = None,
    steps_together: bool = False,
    single: Callable[[], gymnasium.Env[Any, Any]] | None = None,
    steps: int = 60,
    seed: int = 7,
) -> Iterator[Finding]:
    """Try an environment with random actions; yields findings, most informative first.

    Args:
        build: Makes a fresh environment with that many rows.
        build_short: The same with episodes that end within `steps`; None: those of `build` do.
        obstacle_to_restoring: Reason why a saved state cannot be restored; None: none.
        steps_together: True for a simulator that steps all rows at once and seeds them together.
        single: Makes the Gymnasium environment of one row, with episodes as short; None: there is
            none.
        steps: Steps per row and check.
        seed: Of the environment and of the actions.
    """
    try:
        with _without_warnings():
            space, length, done, seconds = _first_episode(build, seed)
    except CoachError as error:
        yield Finding("failed", "plays", str(error))
        return
    yield _ending(length, done)
    yield from _endless_actions(space)
    yield Finding("passed", "speed", f"{done / seconds:,.0f} steps per second, one environment")
    meaningless: set[Check] = set()
    if build_short is None:
        meaningless |= set() if 0 < length <= LONG else ENDING
        steps = max(steps, 2 * min(length, LONG))
    trial = Trial(
        build=build_short or build,
        steps=steps,
        seed=seed,
        partial_sends=not steps_together,
        saves=obstacle_to_restoring is None,
        seeds_rows=not steps_together,
        single=single,
    )
    meaningless |= set() if trial.saves else SAVING
    if steps_together:
        meaningless |= ROW_BY_ROW
        if _holds_back(trial):
            meaningless |= set(ENVIRONMENT_CHECKS) - STEPLESS
            yield Finding(
                "warned",
                "checks that step",
                "left out: a row whose episode ended answers one step later than the others",
            )
    for check in ENVIRONMENT_CHECKS:
        if check in meaningless:
            continue
        finding = _tried(check, trial)
        yield finding
        if check is same_seed_same_numbers and finding.verdict == "failed":
            meaningless |= set(ENVIRONMENT_CHECKS) - WITHOUT_SEEDS
            yield Finding(
                "warned",
                "other checks of seeds and saving",
                "left out: they compare runs with equal seeds",
            )
    if obstacle_to_restoring is not None:
        advice = "a resumed run restarts its open episodes, the rest is exact"
        yield Finding("warned", "can be saved", f"{obstacle_to_restoring}; {advice}")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Warnings are silenced: their texts are findings here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoachWarning)
        yield


def _first_episode(build: Callable[[int], Environment], seed: int) -> tuple[Space, int, int, float]:
    """Play an episode.

    Returns:
        The action space, the episode's steps (0 if it did not end), the steps played, and the
        seconds that they took.
    """
    environment = build(1)
    try:
        environment.reset(seed=seed)
        space, rng = environment.spaces.action, np.random.default_rng(seed)
        size, begin, length, done, seconds = uniform_size(space), time.perf_counter(), 0, 0, 0.0
        while done < EPISODE_STEPS and seconds < SECONDS and not (length and seconds > 1):
            environment.send(actions_from_uniform(space, rng.random((1, size))))
            done += 1
            if environment.recv().end.any():
                length = length or done
            seconds = time.perf_counter() - begin
        return space, length, done, seconds
    finally:
        environment.close()


def _holds_back(trial: Trial) -> bool:
    """Return whether a row whose episode ended answers later than the others."""
    with trial.environment() as environment:
        environment.reset(seed=trial.seed)
        for action in trial.actions(environment):
            environment.send(action)
            if len(environment.recv()) < environment.num_envs:
                return True
    return False


def _ending(length: int, done: int) -> Finding:
    if length:
        return Finding("passed", "episodes end", f"the first after {length:,} random steps")
    return Finding(
        "warned",
        "episodes end",
        f"none has in {done:,} random steps; give it a time limit (max_episode_steps), unless "
        "other actions end them",
    )


def _endless_actions(space: Space) -> Iterator[Finding]:
    """Warn of Boxes of float actions, by key, that have no finite width."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    for key, part in parts.items():
        if not isinstance(part, spaces.Box) or not np.issubdtype(part.dtype, np.floating):
            continue
        if not has_finite_width(part.low, part.high).all():
            name = f" '{key}'" if key else ""
            yield Finding(
                "warned",
                "bounds of actions",
                f"the action{name} in {part} has no width to scale it to: PPO begins with N(0, 1) "
                "in its units, and other agents refuse it; give it finite bounds, here or by "
                "OutputFilter(action=(BoxMasking(low=..., high=...), LinearBoxToBoxMap(low=-1, "
                "high=1)))",
            )


def _tried(check: Check, trial: Trial) -> Finding:
    subject = check.__name__.replace("_", " ")
    try:
        with _without_warnings():
            check(trial)
    except (ContractViolation, CoachError) as error:
        advice = ADVICE.get(check.__name__)
        text = " ".join(str(error).split())
        return Finding("failed", subject, text if advice is None else f"{text}; {advice}")
    return Finding("passed", subject, "")
