"""Goals with a time, with numbers worked out by hand."""

from dataclasses import replace

import numpy as np
from gymnasium import spaces

from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace

LINE = TimedGoalSpace(low=(-5.0,), high=(5.0,), threshold=(0.5,), longest=8)


def at(*places):
    return {"observation": np.array(places, np.float32)[:, None]}


def goals(*pairs):
    """Goals with their times left."""
    return np.array(pairs, np.float32)


def test_space_has_the_goal_and_its_time():
    assert LINE.space.low.tolist() == [-5, 0]
    assert LINE.space.high.tolist() == [5, 8]
    assert replace(LINE, relative=True).space.low.tolist() == [-10, 0]
    assert (LINE.size, LINE.sent_size) == (1, 2)


def test_check_observation_without_a_time_passes():
    LINE.check(spaces.Dict({"observation": spaces.Box(-9, 9, (1,), np.float32)}))


def test_target_times_are_rounded_up_to_steps_and_clipped():
    asked = np.array([[1, 0], [9, 0.4], [2, 3], [2, 3.1], [2, 7.9], [2, 11]])
    sent = LINE.target(asked, at(0, 0, 0, 0, 0, 0))
    assert sent.dtype == np.float32
    assert sent.tolist() == [[1, 1], [5, 1], [2, 3], [2, 4], [2, 8], [2, 8]]
    moved = replace(LINE, relative=True).target(np.array([[1.0, 2.0]]), at(3))
    assert moved.tolist() == [[4, 2]], "the place is relative, the time is not"


def test_asked_in_hindsight_leads_to_the_achieved_place_and_time():
    for space in (LINE, replace(LINE, relative=True)):
        asked = space.asked_in_hindsight(at(1, 1), at(3, -2), np.array([1, 6]))
        assert space.target(asked, at(1, 1)).tolist() == [[3, 1], [-2, 6]]


def test_show_time_left_is_a_fraction_of_the_longest():
    shown = LINE.show(goals((3, 8), (3, 2), (3, 0)), at(0, 0, 0))
    assert shown["desired_goal"].tolist() == [[3], [3], [3]]
    assert shown["time_left"].tolist() == [[1], [0.25], [0]]
    assert all(LINE.shown[key].contains(shown[key][0]) for key in shown)
    assert LINE.steps_left(shown).tolist() == [8, 2, 0]
    left = replace(LINE, observed="relative").show(goals((3, 2)), at(1))
    assert left["desired_goal"].tolist() == [[2]]


@parameter_class
class Half(GoalSpace):
    def achieved(self, observation):
        return super().achieved(observation) / 2


@parameter_class
class TimedHalf(Half, TimedGoalSpace):
    """Half a place at a time."""


def test_timed_goal_space_of_a_subclass_keeps_its_methods():
    timed = TimedHalf.of(Half(low=(-5.0,), high=(5.0,), threshold=(0.5,)), longest=8)
    assert timed.verdict(goals((2, 0), (2, 3)), at(4, 4)).reached.tolist() == [True, False]
    assert timed.overridden("achieved", "judge", "show") == ["achieved"]
