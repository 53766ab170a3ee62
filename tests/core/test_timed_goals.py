"""Goals with a time, with numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ParameterError, SpaceError
from coach_rl.core.goals import GoalSpace, TimedGoalSpace
from coach_rl.core.parameter_classes import parameter_class

LINE = TimedGoalSpace(low=(-5.0,), high=(5.0,), threshold=(0.5,), longest=8)
SEEN = spaces.Dict({"observation": spaces.Box(-9, 9, (1,), np.float32)})


def at(*places):
    return {"observation": np.array(places, np.float32)[:, None]}


def goals(*pairs):
    """Goals with their times left."""
    return np.array(pairs, np.float32)


def test_the_level_above_acts_in_the_goal_and_its_time():
    assert LINE.space.low.tolist() == [-5, 0]
    assert LINE.space.high.tolist() == [5, 8]
    assert replace(LINE, relative=True).space.low.tolist() == [-10, 0]
    assert (LINE.size, LINE.sent_size) == (1, 2)


def test_times_are_rounded_up_to_steps_and_clipped():
    asked = np.array([[1, 0], [9, 0.4], [2, 3], [2, 3.1], [2, 7.9], [2, 11]])
    sent = LINE.target(asked, at(0, 0, 0, 0, 0, 0))
    assert sent.dtype == np.float32
    assert sent.tolist() == [[1, 1], [5, 1], [2, 3], [2, 4], [2, 8], [2, 8]]
    moved = replace(LINE, relative=True).target(np.array([[1.0, 2.0]]), at(3))
    assert moved.tolist() == [[4, 2]], "the place is relative, the time is not"


def test_what_is_asked_in_hindsight_leads_to_where_one_came_when_one_came():
    for space in (LINE, replace(LINE, relative=True)):
        asked = space.asked_in_hindsight(at(1, 1), at(3, -2), np.array([1, 6]))
        assert space.target(asked, at(1, 1)).tolist() == [[3, 1], [-2, 6]]


def test_the_agent_sees_the_time_left_as_a_part_of_the_longest():
    shown = LINE.show(goals((3, 8), (3, 2), (3, 0)), at(0, 0, 0))
    assert shown["desired_goal"].tolist() == [[3], [3], [3]]
    assert shown["time_left"].tolist() == [[1], [0.25], [0]]
    assert all(LINE.shown[key].contains(shown[key][0]) for key in shown)
    assert LINE.steps_left(shown).tolist() == [8, 2, 0]
    left = replace(LINE, observed="relative").show(goals((3, 2)), at(1))
    assert left["desired_goal"].tolist() == [[2]]


def test_a_goal_is_judged_when_its_time_is_up_and_not_before():
    wanted, seen = goals((1, 3), (1, 0), (1, 0), (1, 1)), at(1, 1, 3, 3)
    verdict = LINE.verdict(wanted, seen)
    assert verdict.is_final.tolist() == [False, True, True, False]
    assert verdict.reached.tolist() == [False, True, False, False]
    assert verdict.reward.tolist() == [0, 1, 0, 0]
    assert verdict.difference.tolist() == [[0], [0], [2], [2]]
    assert LINE.reached(wanted, seen).tolist() == [False, True, False, False]
    assert LINE.is_over(wanted, seen).tolist() == [False, True, True, False]
    dense = replace(LINE, reward="dense").verdict(wanted, seen)
    assert dense.reward.tolist() == [0, 0, -2, 0]


def test_the_environment_gives_its_goals_no_time():
    with pytest.raises(SpaceError, match="gives them no time; use a GoalSpace there"):
        LINE.check_given(SEEN)


def test_the_key_of_the_time_left_must_be_free():
    LINE.check(SEEN)
    taken = spaces.Dict({**SEEN.spaces, "time_left": spaces.Box(0, 1, (1,))})
    with pytest.raises(SpaceError, match="shows a 'time_left' of its own"):
        LINE.check(taken)


@pytest.mark.parametrize("longest", [0, -3, 2_000_000, 2.5])
def test_the_longest_time_is_a_number_of_steps(longest):
    with pytest.raises(ParameterError, match=r"TimedGoalSpace\.longest must be int"):
        replace(LINE, longest=longest)


def test_goals_of_a_subclass_keep_their_methods_or_are_refused():
    @parameter_class
    class Half(GoalSpace):
        def achieved(self, observation):
            return super().achieved(observation) / 2

    @parameter_class
    class TimedHalf(Half, TimedGoalSpace):
        """Half a place at a time."""

    half = Half(low=(-5.0,), high=(5.0,), threshold=(0.5,))
    with pytest.raises(ParameterError, match=r"lose .* of Half; .*class Timed\(Half, TimedGoal"):
        TimedGoalSpace.of(half, longest=8)
    timed = TimedHalf.of(half, longest=8)
    assert timed.verdict(goals((2, 0), (2, 3)), at(4, 4)).reached.tolist() == [True, False]
    assert timed.overridden("achieved", "judge", "show") == ["achieved"]
