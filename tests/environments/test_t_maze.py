"""The T-maze's rules, and what policies with and without memory can reach in it."""

import itertools

import numpy as np
import pytest

from coach_rl.core.records import End
from coach_rl.environments.toy import TMaze, TMazeParameters

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


def value_of_belief(length, south):
    """Probability of success of the best policy, by value iteration over beliefs.

    Args:
        length: Steps to the junction.
        south: Probability that the way south is right, by the first observation. Later ones show
            places alone, so it stays.
    """
    value = np.zeros(length + 1)  # no steps are left
    for _ in range(limit_of(length)):
        value = np.array(
            [
                max(
                    {NORTH: 1 - south, SOUTH: south}[action]
                    if (after := moved(position, action, length)) is None
                    else value[after]
                    for action in range(4)
                )
                for position in range(length + 1)
            ]
        )
    return value[0]


def memoryless_success(policies, length, horizon=1):
    """Exact probabilities of success of policies without memory, [P].

    Args:
        policies: [P, 4, 4] probabilities of actions by what is shown: the cues north and south, the
            corridor, the junction.
        length: Steps to the junction.
        horizon: Steps that an action is repeated; the cue is shown before the first.
    """
    success = np.zeros(len(policies))
    for cue, right in enumerate((NORTH, SOUTH)):
        at = np.zeros((len(policies), length + 1))
        at[:, 0] = 1
        for decided in range(0, limit_of(length), horizon):
            held = min(horizon, limit_of(length) - decided)
            after = np.zeros_like(at)
            for position, action in itertools.product(range(length + 1), range(4)):
                shown = cue if decided == 0 else 3 if position == length else 2
                chance = at[:, position] * policies[:, shown, action]
                place = position
                for _ in range(held):
                    place = None if place is None else moved(place, action, length)
                if place is not None:
                    after[:, place] += chance
                elif action == right:
                    success += chance / 2
            at = after
    return success


def deterministic_policies():
    return np.eye(4)[list(itertools.product(range(4), repeat=4))]


def grid_of_policies(parts):
    """All policies whose probabilities are multiples of 1 / parts."""
    counts = [c for c in itertools.product(range(parts + 1), repeat=4) if sum(c) == parts]
    return np.array(counts)[list(itertools.product(range(len(counts)), repeat=4))] / parts


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
        environment.send(np.full(40, action))
        shown.append(environment.recv().observation["observation"])
    for step, place in enumerate(["corridor"] * 4 + ["junction"], start=1):
        assert {SHOWN[tuple(row)] for row in shown[step].tolist()} == {place}


@pytest.mark.parametrize("length", [1, 10, 50])
def test_t_maze_optimal_policy_succeeds_always(length):
    assert value_of_belief(length, 0.0) == value_of_belief(length, 1.0) == 1
    assert value_of_belief(length, 0.5) == 0.5  # the best of those that don't see the cue
    environment = TMazeParameters(length=length).build(num_envs=30)
    seen = environment.reset(seed=0).observation["observation"]
    turn = np.where(seen[:, 0] == 1, SOUTH, NORTH)
    total = np.zeros(30)
    for step in range(length + 1):
        at_junction = (seen == [0, 1, 0]).all(axis=1)
        assert at_junction.all() == (step == length)
        environment.send(np.where(at_junction, turn, EAST))
        answer = environment.recv()
        seen = answer.observation["observation"]
        total += answer.reward
    assert answer.info["is_success"].all()
    assert (answer.end == End.TERMINATED).all()
    assert total.tolist() == [4.0] * 30


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    ("length", "horizon"), [(1, 1), (2, 1), (10, 1), (50, 1), (10, 5), (10, 3)]
)
def test_t_maze_best_memoryless_policy_succeeds_half_the_time(length, horizon):
    policies = deterministic_policies()
    if length <= 2:
        policies = np.concatenate([policies, grid_of_policies(3)])
    draws = np.random.default_rng(0).dirichlet([0.5] * 4, size=(2_000, 4))
    success = memoryless_success(np.concatenate([policies, draws]), length, horizon)
    assert success.max() == pytest.approx(0.5, abs=1e-12)


def test_t_maze_without_a_turn_is_truncated():
    environment = TMazeParameters(length=3).build(num_envs=1)
    environment.reset(seed=0)
    ends = []
    for _ in range(limit_of(3)):
        environment.send(np.array([WEST]))
        ends.append(int(environment.recv().end[0]))
    assert ends == [0] * 15 + [End.TRUNCATED]
