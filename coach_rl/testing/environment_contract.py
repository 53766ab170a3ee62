"""The promises of every simulator, one check per promise.

    check_environment(lambda num_envs: MyParameters().build(num_envs=num_envs))

runs them all and raises `ContractViolation` at the first that fails. With pytest, each check is
a test of its own:

    class TestMine(EnvironmentContract):
        def build(self, num_envs):
            return MyParameters().build(num_envs=num_envs)

The checks play random actions, so give tasks with long episodes a short time limit, and choose
`steps` such that some episode ends within them. "Equal" always means equal to the last bit.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium

from coach_rl.core.interfaces import Environment
from coach_rl.testing.answer_checks import (
    answers_are_not_overwritten,
    answers_can_be_written_to,
    answers_have_the_promised_form,
    duration_counts_steps,
    end_bits_agree,
    info_is_aligned,
    info_is_that_of_the_step,
    last_observation_is_the_true_one,
    reset_answers_for_all_rows,
    sent_actions_stay_as_they_are,
)
from coach_rl.testing.saving_checks import (
    close_twice,
    open_decisions_are_saved,
    saved_before_reset,
    state_replaces_everything,
    state_round_trip,
    state_shares_no_memory,
)
from coach_rl.testing.seed_checks import (
    different_seeds_differ_if_anything_does,
    integer_seed_counts_up,
    no_seed_continues,
    rows_live_alone_as_among_others,
    same_seed_same_numbers,
)
from coach_rl.testing.sending_checks import (
    bad_actions_are_refused,
    bad_rows_are_refused,
    directive_equals_bare_action,
    recv_without_send_is_empty,
    rows_and_actions_stay_together,
    send_before_reset_is_refused,
    unsent_rows_stay_untouched,
)
from coach_rl.testing.trial import Check, Trial

ENVIRONMENT_CHECKS: tuple[Check, ...] = (
    reset_answers_for_all_rows,
    answers_have_the_promised_form,
    info_is_aligned,
    duration_counts_steps,
    end_bits_agree,
    last_observation_is_the_true_one,
    same_seed_same_numbers,
    different_seeds_differ_if_anything_does,
    integer_seed_counts_up,
    rows_live_alone_as_among_others,
    info_is_that_of_the_step,
    no_seed_continues,
    recv_without_send_is_empty,
    directive_equals_bare_action,
    rows_and_actions_stay_together,
    unsent_rows_stay_untouched,
    bad_rows_are_refused,
    bad_actions_are_refused,
    send_before_reset_is_refused,
    answers_are_not_overwritten,
    answers_can_be_written_to,
    sent_actions_stay_as_they_are,
    state_round_trip,
    state_replaces_everything,
    state_shares_no_memory,
    open_decisions_are_saved,
    saved_before_reset,
    close_twice,
)
"""Every promise, in the order in which `check_environment` tries them."""


def check_environment(
    build: Callable[[int], Environment],
    *,
    steps: int = 60,
    seed: int = 7,
    partial_sends: bool = True,
    saves: bool = True,
    seeds_rows: bool = True,
    single: Callable[[], gymnasium.Env[Any, Any]] | None = None,
) -> None:
    """Run every check on an environment.

    Args:
        build: Makes a fresh environment with that many rows; called many times.
        steps: Steps per row and check; an episode must end within them.
        seed: Of the environment and of the actions.
        partial_sends: False for a simulator that steps all rows at once.
        saves: False for a simulator that cannot be saved.
        seeds_rows: False for a simulator whose rows share a random stream.
        single: Makes the Gymnasium environment of one row, to compare with; None: there is none.

    Raises:
        ContractViolation: A promise is broken; the message names it and the violation.
    """
    trial = Trial(
        build=build,
        steps=steps,
        seed=seed,
        partial_sends=partial_sends,
        saves=saves,
        seeds_rows=seeds_rows,
        single=single,
    )
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
        return Trial(
            build=self.build,
            steps=self.steps,
            seed=self.seed,
            partial_sends=self.partial_sends,
            saves=self.saves,
            seeds_rows=self.seeds_rows,
            single=type(self).single,
        )


def _as_test(check: Check) -> Callable[[EnvironmentContract], None]:
    def test(contract: EnvironmentContract) -> None:
        check(contract.trial)

    test.__doc__ = check.__doc__
    return test


for _check in ENVIRONMENT_CHECKS:
    setattr(EnvironmentContract, f"test_{_check.__name__}", _as_test(_check))
