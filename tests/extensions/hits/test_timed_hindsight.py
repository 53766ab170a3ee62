"""Hindsight for goals with a time, against numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import ALONE, LevelPlace
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import TIME_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from tests.agents.decisions import transition
from tests.memories import replay_worlds
from tests.refusals import check_refused

LONGEST, ASKED = 20, 12
LINE = rl.TimedGoalSpace(low=(-50.0,), high=(50.0,), threshold=(0.4,), longest=LONGEST)
SEEN = spaces.Dict({"observation": spaces.Box(-99, 99, (1,), np.float32), **LINE.shown})
DURATIONS = (1, 3, 2, 4, 2)
"""Of the decisions of a sub-episode, which goes from 0 to 5 in steps of 1 and has 12 steps."""


def build(
    *, goal=LINE, observed=SEEN, ratio=1e9, strategy="future", ends=True, place=ALONE, **changes
):
    hindsight = rl.HindsightParameters(
        goal=goal, strategy=strategy, ratio=ratio, goal_ends_episode=ends
    )
    return replay_worlds.build(
        num_envs=1, observed=observed, capacity=40, relabelling=hindsight, place=place, **changes
    )


def add_sub_episode(memory, *, first=0, decisions=5, terminated=None, below=None):
    """Decisions towards 30, which is never reached; the time is up with the fifth."""
    left = ASKED
    for number in range(decisions):
        after = left - DURATIONS[number]
        is_last = number == decisions - 1
        ends = after == 0 if terminated is None else is_last and terminated
        memory.add(
            transition(
                seen(first + number, left),
                np.array([[0.5]], np.float32),
                seen(first + number + 1, after),
                reward=0.0,
                terminated=ends,
                duration=DURATIONS[number],
                below=below,
            )
        )
        left = after


def seen(place, left):
    return {
        "observation": np.array([[place]], np.float32),
        "desired_goal": np.array([[30]], np.float32),
        TIME_KEY: np.array([[left / LONGEST]], np.float32),
    }


def drawn(memory, size=400):
    """The different transitions of a batch: place, goal, times left, reward, discount."""
    batch = memory.sample(size)
    now, after = batch.observation, batch.next_observation
    times = [torch.round(each[TIME_KEY] * LONGEST) for each in (now, after)]
    columns = [now["observation"], now["desired_goal"], after["desired_goal"], *times]
    columns += [batch.reward[:, None], batch.discount[:, None]]
    return {tuple(row) for row in torch.cat(columns, dim=1).tolist()}


def test_timed_hindsight_future_goal_has_elapsed_time():
    memory = build()
    add_sub_episode(memory)
    expected = set()
    for at in range(5):
        for source in range(at, 5):  # where the goal is taken from, and its time is up
            after = sum(DURATIONS[at + 1 : source + 1])
            is_up = after == 0
            goal = source + 1.0
            times = (DURATIONS[at] + after, after)
            expected.add((at, goal, goal, *times, is_up, 0.0 if is_up else 0.5))
    assert drawn(memory) == expected


def test_timed_hindsight_final_uses_last_state():
    memory = build(strategy="final")
    add_sub_episode(memory)
    assert {(each[0], each[1], each[4]) for each in drawn(memory)} == {
        (0, 5, 11), (1, 5, 8), (2, 5, 6), (3, 5, 2), (4, 5, 0),
    }  # fmt: skip


def test_timed_hindsight_goals_are_of_same_sub_episode():
    memory = build()
    add_sub_episode(memory)
    add_sub_episode(memory, first=10, decisions=3)
    rows = drawn(memory)
    assert {each[1] for each in rows if each[0] >= 10} == {11, 12, 13}
    assert {each[1] for each in rows if each[0] < 10} == {1, 2, 3, 4, 5}


def test_timed_hindsight_ratio_zero_keeps_time():
    memory = build(ratio=0.0)
    add_sub_episode(memory)
    left = ASKED - np.cumsum([0, *DURATIONS])
    assert drawn(memory) == {
        (at, 30, 30, left[at], left[at + 1], 0, 0.5 * (at < 4)) for at in range(5)
    }


def test_timed_hindsight_dense_reward_at_end_of_time():
    memory = build(goal=replace(LINE, reward="dense", threshold=(0.0,)), ratio=0.0)
    add_sub_episode(memory)
    assert {each[5] for each in drawn(memory)} == {0}, "as it was stored"
    memory = build(goal=replace(LINE, reward="dense"))
    add_sub_episode(memory)
    assert {(each[5], each[6]) for each in drawn(memory)} == {(0, 0), (0, 0.5)}


def test_timed_hindsight_n_step_stops_at_end_of_time():
    memory = build(n_step=3)
    add_sub_episode(memory)
    rows = {(each[0], each[1]): each[3:] for each in drawn(memory)}
    # from 0: the goal 2 is due after the second decision, worth 0.5 ** 1; 5 is not due in three
    assert rows[0, 2] == (4, 0, 0.5, 0)
    assert rows[0, 5] == (12, 6, 0, 0.125)
    assert rows[2, 3] == (2, 0, 1, 0)


def test_timed_hindsight_other_end_is_kept():
    memory = build()
    add_sub_episode(memory, decisions=3, terminated=True)
    by_state = {(each[0], each[1]): each[5:] for each in drawn(memory)}
    assert by_state[2, 3] == (1, 0)
    assert by_state[1, 3] == (0, 0.5)
    memory = build(n_step=2)
    add_sub_episode(memory, decisions=3, terminated=True)
    assert {each[6] for each in drawn(memory) if each[0] == 1} == {0}


def test_timed_hindsight_end_by_failure_is_kept_where_time_is_up():
    level = rl.LevelParameters(
        name="top", agent=rl.ScriptedAgentParameters(policy="still"), parts=(rl.StopOnFailure(),)
    )
    memory = build(ends=False, place=LevelPlace(level=level))
    missed = np.array([End.HORIZON], np.uint8)
    add_sub_episode(memory, decisions=3, terminated=True, below=missed)
    by_state = {(each[0], each[1]): each[5:] for each in drawn(memory)}
    assert by_state[2, 3] == (1, 0)
    assert by_state[1, 3] == (0, 0.5)


@parameter_class
class Doubled(rl.TimedGoalSpace):
    """Goals on a line of twice the scale."""

    def achieved(self, observation):
        return super().achieved(observation) * np.float32(2)


def test_timed_hindsight_custom_achieved_is_computed_once():
    memory = build(
        goal=Doubled(low=(-50.0,), high=(50.0,), threshold=(0.4,), longest=LONGEST),
        strategy="final",
    )
    add_sub_episode(memory)
    assert {(each[0], each[1], each[5]) for each in drawn(memory)} == {
        (0, 10, 0), (1, 10, 0), (2, 10, 0), (3, 10, 0), (4, 10, 1),
    }  # fmt: skip


UNTIMED = spaces.Dict({key: SEEN[key] for key in ("observation", "desired_goal")})


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: build(strategy="episode"), ConfigurationError, "or 'final', got 'episode'"),
        (lambda: build(observed=UNTIMED), SpaceError, "needs the observation key 'time_left'"),
    ],
)
def test_timed_hindsight_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
