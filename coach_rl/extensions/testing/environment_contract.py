"""The promises of every simulator, one check per promise, and a readable report on them.

    check_environment(lambda num_envs: MyParameters().build(num_envs=num_envs))

runs them all and raises `ContractViolation` at the first that fails. With pytest, each check is
a test of its own:

    class TestMine(EnvironmentContract):
        def build(self, num_envs):
            return MyParameters().build(num_envs=num_envs)

The report has a finding per promise:

    for finding in examine(build, obstacle_to_restoring=None):
        print(finding.verdict, finding.subject, finding.text)

The checks play random actions, so give tasks with long episodes a short time limit, and choose
`steps` such that some episode ends within them. "Equal" always means equal to the last bit.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.box_ranges import has_finite_width
from coach_rl.core.errors import CoachError, CoachWarning
from coach_rl.core.interfaces import Environment
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.spaces import Space
from coach_rl.extensions.testing import exchange_checks as exchange
from coach_rl.extensions.testing import repetition_checks as repetition
from coach_rl.extensions.testing.allowed_actions import with_allowed_actions
from coach_rl.extensions.testing.trial import Check, ContractViolation, Trial

SAVING: tuple[Check, ...] = (
    repetition.state_round_trip,
    repetition.state_replaces_everything,
    repetition.state_shares_no_memory,
    repetition.open_decisions_are_saved,
    repetition.saved_before_reset,
)
ENVIRONMENT_CHECKS: tuple[Check, ...] = (
    exchange.reset_answers_for_all_rows,
    exchange.answers_have_the_promised_form,
    exchange.info_is_aligned,
    exchange.duration_counts_steps,
    exchange.end_bits_agree,
    exchange.last_observation_is_the_true_one,
    exchange.masks_allow_an_action,
    repetition.same_seed_same_numbers,
    repetition.different_seeds_differ_if_anything_does,
    repetition.integer_seed_counts_up,
    repetition.rows_live_alone_as_among_others,
    exchange.info_is_that_of_the_step,
    repetition.no_seed_continues,
    exchange.recv_without_send_is_empty,
    exchange.directive_equals_bare_action,
    exchange.rows_and_actions_stay_together,
    exchange.unsent_rows_stay_untouched,
    exchange.bad_rows_are_refused,
    exchange.bad_actions_are_refused,
    exchange.send_before_reset_is_refused,
    exchange.answers_are_not_overwritten,
    exchange.answers_can_be_written_to,
    exchange.sent_actions_stay_as_they_are,
    *SAVING,
    repetition.close_twice,
)
"""Every promise, in the order in which `check_environment` tries them."""
EPISODE_STEPS = 10_000
"""Steps in which an episode is expected to end."""
LONG = 500
"""Steps of an episode that the checks don't play to its end."""
SECONDS = 5.0
"""Time that the search for an episode's end takes at most."""
WITHOUT_SEEDS = {
    *ENVIRONMENT_CHECKS[: ENVIRONMENT_CHECKS.index(repetition.same_seed_same_numbers)],
    exchange.send_before_reset_is_refused,
    exchange.answers_are_not_overwritten,
    exchange.sent_actions_stay_as_they_are,
    repetition.close_twice,
}
"""Checks that mean something where no two runs are equal."""
ENDING = {exchange.end_bits_agree, exchange.last_observation_is_the_true_one}
STEPLESS = {
    exchange.reset_answers_for_all_rows,
    exchange.send_before_reset_is_refused,
    repetition.close_twice,
}
ROW_BY_ROW = {repetition.rows_live_alone_as_among_others, exchange.unsent_rows_stay_untouched}
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
Tried = TypeVar("Tried")
"""The trial of an environment, or of an agent."""


def check_environment(
    build: Callable[[int], Environment],
    **settings: Any,
) -> None:
    """Run every check on an environment.

    Args:
        build: Makes a fresh environment with that many rows; called many times.
        settings: Of the `Trial`, such as `steps=30`.

    Raises:
        ContractViolation: A promise is broken; the message names it and the violation.
    """
    trial = Trial(build=build, **settings)
    for check in ENVIRONMENT_CHECKS:
        check(trial)


class EnvironmentContract:
    """Makes each check a pytest test; inherit it, name your class `Test...`, define `build`."""

    steps = 60
    seed = 7
    partial_sends = True
    saves = True
    seeds_rows = True
    single: ClassVar[Callable[[], gymnasium.Env[Any, Any]] | None] = None

    def build(self, num_envs: int) -> Environment:
        """A fresh environment with that many rows."""
        raise NotImplementedError(f"{type(self).__name__} must define build(num_envs)")

    @property
    def trial(self) -> Trial:
        """The trial that the checks run."""
        names = ("steps", "seed", "partial_sends", "saves", "seeds_rows")
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        return Trial(build=self.build, single=type(self).single, **settings)


def add_tests(
    contract: type, checks: Sequence[Callable[[Tried], None]], trial: Callable[[Any], Tried]
) -> None:
    """Give a class a test for each check, of the trial of an instance."""

    def as_test(check: Callable[[Tried], None]) -> Callable[[object], None]:
        def test(self: object) -> None:
            check(trial(self))

        test.__doc__ = check.__doc__
        return test

    for check in checks:
        setattr(contract, f"test_{check.__name__}", as_test(check))


add_tests(EnvironmentContract, ENVIRONMENT_CHECKS, lambda contract: contract.trial)


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
) -> Iterator[Finding]:
    """Try an environment with random actions; yields findings, most informative first.

    Args:
        build: Makes a fresh environment with that many rows.
        build_short: The same with episodes that end within `steps`; None: those of `build` do.
        obstacle_to_restoring: Reason why a saved state cannot be restored; None: none.
        steps_together: True for a simulator that steps all rows at once and seeds them together.
        single: Makes the Gymnasium environment of one row, with episodes as short; None: there is
            none.
    """
    try:
        with warnings.catch_warnings(action="ignore", category=CoachWarning):
            space, length, done, seconds = _first_episode(build)
    except CoachError as error:
        yield Finding("failed", "plays", str(error))
        return
    yield _ending(length, done)
    yield from _endless_actions(space)
    yield Finding("passed", "speed", f"{done / seconds:,.0f} steps per second, one environment")
    meaningless: set[Check] = set()
    steps = EnvironmentContract.steps
    if build_short is None:
        meaningless |= set() if 0 < length <= LONG else ENDING
        steps = max(steps, 2 * min(length, LONG))
    trial = Trial(
        build=build_short or build,
        steps=steps,
        partial_sends=not steps_together,
        saves=obstacle_to_restoring is None,
        seeds_rows=not steps_together,
        single=single,
    )
    meaningless |= set() if trial.saves else set(SAVING)
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
        finding = tried(check, trial, advice=ADVICE.get(check.__name__))
        yield finding
        if check is repetition.same_seed_same_numbers and finding.verdict == "failed":
            meaningless |= set(ENVIRONMENT_CHECKS) - WITHOUT_SEEDS
            yield Finding(
                "warned",
                "other checks of seeds and saving",
                "left out: they compare runs with equal seeds",
            )
    if obstacle_to_restoring is not None:
        advice = "a resumed run restarts its open episodes, the rest is exact"
        yield Finding("warned", "can be saved", f"{obstacle_to_restoring}; {advice}")


def _first_episode(build: Callable[[int], Environment]) -> tuple[Space, int, int, float]:
    """Play an episode.

    Returns:
        The action space, the episode's steps (0 if it did not end), the steps played, and the
        seconds that they took.
    """
    with closing(with_allowed_actions(build(1))) as environment:
        environment.reset(seed=EnvironmentContract.seed)
        space = environment.spaces.action
        rng = np.random.default_rng(EnvironmentContract.seed)
        size = uniform_size(space)
        begin = time.perf_counter()
        length = 0
        done = 0
        seconds = 0.0
        while done < EPISODE_STEPS and seconds < SECONDS and not (length and seconds > 1):
            environment.send(actions_from_uniform(space, rng.random((1, size))))
            done += 1
            if environment.recv().end.any():
                length = length or done
            seconds = time.perf_counter() - begin
        return space, length, done, seconds


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


def tried(
    check: Callable[[Tried], None], trial: Tried, *, of: str = "", advice: str | None = None
) -> Finding:
    """The finding of a check.

    Args:
        check: The check.
        trial: The trial that it runs.
        of: What is tried, to stand before the promise.
        advice: The remedy where the promise is broken; None where the violation names it.
    """
    subject = of + check.__name__.replace("_", " ")
    try:
        with warnings.catch_warnings(action="ignore", category=CoachWarning):
            check(trial)
    except (ContractViolation, CoachError) as error:
        text = " ".join(str(error).split())
        return Finding("failed", subject, text if advice is None else f"{text}; {advice}")
    return Finding("passed", subject, "")
