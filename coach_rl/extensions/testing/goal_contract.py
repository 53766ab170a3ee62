"""The promises of a level's goals, one check per promise; for goal spaces of your own.

    trial = AgentTrial(parameters=TD3AgentParameters(...), context=AgentContext(..., place=place))
    check_goals(trial)                   # place.level.goal_space is the space, as it is built

runs them all and raises `ContractViolation` at the first that fails. Goals that learn do so from
what the trial's agent learns from, in a world of random answers. `coach check -p PRESET` tries the
goals of each level of a preset.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.errors import RunError
from coach_rl.core.goals import GoalSpace, Verdict
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.extensions.testing.agent_trial import AgentTrial, Play, frozen_copies
from coach_rl.extensions.testing.trial import ContractViolation, expect, expect_same_state

SAMPLES = 7
"""Number of rows that are judged."""
NEAR = 1e-5
"""Relative error that rows may have beside rows that are judged alone."""
Check = Callable[[AgentTrial], None]


def shapes_agree(trial: AgentTrial) -> None:
    """Achieved goals, those that actions set, and those shown have the announced shapes."""
    goals, seen = _fresh(trial), _observations(trial)
    goals.achieved(seen)  # RunError: not [R, G]
    actions = _actions(goals)
    target = goals.target(actions, seen)
    expect(
        target.shape == (SAMPLES, goals.sent_size) and target.dtype == np.float32,
        f"target() returned {target.dtype} {target.shape} for actions {actions.shape}; return "
        f"float32 [R, {goals.sent_size}], the goals that actions of `space` set",
    )
    shown = goals.show(target, seen)
    for key, space in goals.shown.items():
        found = None if key not in shown else shown[key].shape
        expect(
            shown.keys() == goals.shown.keys() and found == (SAMPLES, *(space.shape or ())),
            f"show() returned {found} under '{key}', and `shown` announces {space.shape}",
        )


def only_the_keys_are_read(trial: AgentTrial) -> None:
    """Observations under other keys than those of the goals change nothing."""
    goals, seen = _fresh(trial), _observations(trial)
    keys = getattr(goals, "keys", (goals.key,))
    try:
        least = goals.achieved({key: seen[key] for key in keys})
    except KeyError as error:
        raise ContractViolation(
            f"achieved() reads the observation key {error}, and memories keep {keys} for it; "
            "return every key that it reads from `keys`"
        ) from error
    expect(
        bool((least == goals.achieved(seen)).all()),
        f"achieved() returned something else where keys beside {keys} are left out",
    )


def verdicts_have_the_promised_form(trial: AgentTrial) -> None:
    """A verdict has finite rewards, and bools for what is reached and final."""
    verdict = _verdict(_fresh(trial), trial)  # RunError: not a Verdict of R rows
    expect(bool(np.isfinite(verdict.reward).all()), "judge() returned a reward that is not finite")


def batches_are_judged_like_single_rows(trial: AgentTrial) -> None:
    """The verdict on a row depends on no other row."""
    goals = trial.trained_goals
    whole = _verdict(goals, trial)
    alone = [_verdict(goals, trial, np.array([row])) for row in range(SAMPLES)]
    for name in ("reward", "reached", "is_final"):
        single = np.concatenate([getattr(each, name) for each in alone])
        expect(
            bool(np.allclose(getattr(whole, name), single, rtol=NEAR, atol=NEAR)),
            f"judge() returned another {name} for a row among others than for the row alone; judge "
            "each row by its own goal, achieved and before",
        )


def ends_depend_on_what_is_achieved_alone(trial: AgentTrial) -> None:
    """Ends are the same whatever was achieved before a decision."""
    goals = trial.trained_goals
    if not goals.uses_before:
        return
    goal = _goals(goals, trial)
    seen = _observations(trial)
    one, other = (goals.verdict(goal, seen, before) for before in (seen, _observations(trial, 1)))
    expect(
        bool((one.reached == other.reached).all() and (one.is_final == other.is_final).all()),
        "judge() returned other ends for another `before`; levels below judge ends without it, so "
        "let only the reward depend on it",
    )


def what_is_judged_stays_as_it_is(trial: AgentTrial) -> None:
    """Judging writes neither to its arguments nor to the goals."""
    play = trial.play().heatup()
    goals = _of(play, trial)
    seen = _observations(trial)
    before = play.agent.state_dict()
    version = getattr(goals, "version", 0)
    goal = _goals(goals, trial)
    is_same = frozen_copies(iter([goal, *seen.values()]))
    goals.verdict(goal, seen, _observations(trial, 1))
    expect(is_same(), "judge() or achieved() wrote into its arguments; copy them first")
    expect_same_state(
        before, play.agent.state_dict(), "judging changed the goals; change them in learn() alone"
    )
    expect(getattr(goals, "version", 0) == version, "judging raised the version")


def versions_rise_with_what_is_learned(trial: AgentTrial) -> None:
    """The version rises whenever verdicts change, at no other time, and never falls."""
    play = trial.play()
    goals: Any = _of(play, trial)
    if not goals.learns:
        return
    seen = _observations(trial)
    version = goals.version
    achieved = goals.achieved(seen)
    for number in range(5 + trial.ticks):
        play.tick(Phase.HEATUP if number < 5 else Phase.TRAIN)
        now = goals.achieved(seen)
        changed = not np.array_equal(now, achieved)
        expect(
            goals.version > version or not changed,
            "what observations achieve changed and the version did not, so memories take what is "
            "stored for fresh; let learn() return True whenever it changes anything",
        )
        expect(goals.version >= version, "the version fell; let learn() alone change it")
        achieved = now
        version = goals.version


def saved_goals_judge_alike(trial: AgentTrial) -> None:
    """Goals that were saved and loaded, or came with a policy, judge as before."""
    play = trial.trained
    goals: Any = getattr(play.agent, "goals", None)
    if goals is None:  # goals without a state
        return
    expected = _verdict(goals, trial)
    for name in ("state_dict", "policy_state_dict"):
        other = trial.build(seed=8)
        state = getattr(play.agent, name)()
        (other.load_state_dict if name == "state_dict" else other.load_policy)(state)
        loaded: Any = getattr(other, "goals", None)
        found = _verdict(loaded, trial, goal=_goals(goals, trial))
        is_same = all(
            np.array_equal(getattr(found, each), getattr(expected, each))
            for each in ("difference", "reward", "reached", "is_final")
        )
        expect(
            is_same and loaded.version == goals.version,
            f"goals that were given what {name}() returned judge differently; list what judging "
            "needs in SAVED, as SavedAttribute(name, policy=True)",
        )


def same_seed_same_goals(trial: AgentTrial) -> None:
    """Goals of one seed are built and learn alike."""
    one, other = trial.play(), trial.play()
    for play in (one, other):
        play.heatup().train(trial.ticks)
    if _of(one, trial).learns:
        found, expected = (_verdict(_of(play, trial), trial) for play in (one, other))
        expect(
            np.array_equal(found.difference, expected.difference),
            "two goal spaces with the same seed learned different numbers; draw from generators "
            "that are made of context.runtime.seed, never from numpy's or torch's global ones",
        )


GOAL_CHECKS: tuple[Check, ...] = (
    shapes_agree,
    only_the_keys_are_read,
    verdicts_have_the_promised_form,
    batches_are_judged_like_single_rows,
    ends_depend_on_what_is_achieved_alone,
    what_is_judged_stays_as_it_is,
    versions_rise_with_what_is_learned,
    saved_goals_judge_alike,
    same_seed_same_goals,
)
"""Every promise, in the order in which `check_goals` tries them."""


def check_goals(trial: AgentTrial) -> None:
    """Run every check on the goals of the level at which a trial's agent is.

    Raises:
        ContractViolation: A promise is broken; the message names it and the remedy.
    """
    for check in GOAL_CHECKS:
        try:
            check(trial)
        except RunError as error:
            raise ContractViolation(str(error)) from error


def _fresh(trial: AgentTrial) -> GoalSpace:
    """The goals of the trial, which no agent trains."""
    goals = trial.context.place.goal
    assert goals is not None, "goals are checked at a level that has some"
    return goals


def _of(play: Play, trial: AgentTrial) -> GoalSpace:
    """The goals of a play: those of its agent, if they learn."""
    goals: GoalSpace | None = getattr(play.agent, "goals", None)
    return _fresh(trial) if goals is None else goals


def _observations(trial: AgentTrial, number: int = 0) -> Observation:
    """Some observations of the simulator."""
    drawn = trial.samples(SAMPLES, number)
    return {key: values for key, values in drawn.items() if key not in DIRECTIVE_KEYS}


def _actions(goals: GoalSpace) -> Array:
    space = goals.space
    rng = np.random.default_rng(5)
    low, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)
    return np.asarray(low + rng.random((SAMPLES, *low.shape)) * (high - low), np.float32)


def _goals(goals: GoalSpace, trial: AgentTrial) -> FloatArray:
    """Goals that actions of the level above set."""
    return goals.target(_actions(goals), _observations(trial))


def _verdict(
    goals: GoalSpace,
    trial: AgentTrial,
    rows: Array | None = None,
    goal: FloatArray | None = None,
) -> Verdict:
    """The verdict on some observations, of all rows or of these."""
    goal = _goals(goals, trial) if goal is None else goal
    after, before = _observations(trial, 1), _observations(trial)
    if rows is not None:
        goal = goal[rows]
        after, before = (
            {key: values[rows] for key, values in each.items()} for each in (after, before)
        )
    return goals.verdict(goal, after, before)
