"""The T-maze's rules, and a policy with memory that always succeeds."""

import itertools

import numpy as np
import pytest

from coach_rl.core.records import End
from coach_rl.environments.toy import TMaze, TMazeParameters
from tests.environments.walks import answer_to

NORTH, EAST, SOUTH, WEST = range(4)
SHOWN = {(0, 1, 1): "north", (1, 1, 0): "south", (1, 0, 1): "corridor", (0, 1, 0): "junction"}
NO_LUCK = np.zeros((1, 0))


def moved(position, action, length):
    """The place after a step; None after a turn at the junction."""
    if position == length and action in (NORTH, SOUTH):
        return None
    return min(max(position + {EAST: 1, WEST: -1}.get(action, 0), 0), length)


def limit_of(length):
    return 2 * length + 10


@pytest.mark.parametrize("length", [1, 2, 5])
def test_t_maze_every_step_follows_the_rules(length):
    world = TMaze(length)
    for position, south, action in itertools.product(range(length + 1), (0, 1), range(4)):
        state = {
            "position": np.array([position]),
            "south": np.array([south == 1]),
            "first": np.array([False]),
        }
        step = world.step(state, np.array([action]), NO_LUCK)
        after = moved(position, action, length)
        right = (NORTH, SOUTH)[south] == action
        assert step.terminated.tolist() == [after is None]
        assert step.info["is_success"].tolist() == [after is None and right]
        if after is None:
            assert step.reward.tolist() == [4.0 if right else -0.1]
        else:
            assert step.state["position"].tolist() == [after]
            assert step.reward.tolist() == [0.0 if after > position else -0.1]
        assert step.state["first"].tolist() == [False]
        assert step.state["south"].tolist() == [south == 1]


def test_t_maze_shows_the_cue_at_the_first_step_alone():
    environment = TMazeParameters(length=2).build(num_envs=40)
    shown = [environment.reset(seed=0).observation["observation"]]
    assert {SHOWN[tuple(row)] for row in shown[0].tolist()} == {"north", "south"}
    for action in (WEST, EAST, WEST, EAST, EAST):  # back at the start after two of them
        shown.append(answer_to(environment, np.full(40, action)).observation["observation"])
    for step, place in enumerate(["corridor"] * 4 + ["junction"], start=1):
        assert {SHOWN[tuple(row)] for row in shown[step].tolist()} == {place}


@pytest.mark.parametrize("length", [1, 10, 50])
def test_t_maze_optimal_policy_succeeds_always(length):
    environment = TMazeParameters(length=length).build(num_envs=30)
    seen = environment.reset(seed=0).observation["observation"]
    turn = np.where(seen[:, 0] == 1, SOUTH, NORTH)
    total = np.zeros(30)
    for step in range(length + 1):
        at_junction = (seen == [0, 1, 0]).all(axis=1)
        assert at_junction.all() == (step == length)
        answer = answer_to(environment, np.where(at_junction, turn, EAST))
        seen = answer.observation["observation"]
        total += answer.reward
    assert answer.info["is_success"].all()
    assert (answer.end == End.TERMINATED).all()
    assert total.tolist() == [4.0] * 30


def test_t_maze_without_a_turn_is_truncated():
    environment = TMazeParameters(length=3).build(num_envs=1)
    environment.reset(seed=0)
    ends = []
    for _ in range(limit_of(3)):
        ends.append(int(answer_to(environment, np.array([WEST])).end[0]))
    assert ends == [0] * 15 + [End.TRUNCATED]
