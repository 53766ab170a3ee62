"""Held-out episodes: their choice, and the stand-in for a world that replays them."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.extensions.data.files import write_file
from coach_rl.extensions.data.held_out import split_episodes
from tests.extensions.data.test_batch_graph import SEEN, agent, recorded
from tests.refusals import check_refused


@pytest.fixture
def data(tmp_path):
    return str(write_file(recorded(), tmp_path / "mass.npz", SEEN))


@pytest.mark.parametrize(("count", "share", "expected"), [(10, 0, 0), (10, 0.01, 1), (10, 0.3, 3)])
def test_split_is_a_partition_of_the_episodes(count, share, expected):
    learned, out = split_episodes(count, share, seed=3)
    assert len(out) == expected
    assert sorted([*learned, *out]) == list(range(count))


def test_split_depends_on_its_seed_alone():
    first, second = (split_episodes(100, 0.2, seed)[1].tolist() for seed in (0, 1))
    assert first == split_episodes(100, 0.2, 0)[1].tolist()
    assert first != second


def test_split_that_leaves_nothing_is_refused():
    check_refused(lambda: split_episodes(1, 0.5, 0), ConfigurationError, "leaves nothing to learn")


def stand_in(data, num_envs=1, **changes):
    return rl.HeldOutParameters(data=data, held_out=0.4, **changes).build(num_envs=num_envs)


@pytest.mark.parametrize("num_envs", [1, 2, 3])
def test_stand_in_replays_the_held_out_episodes(data, num_envs):
    known = recorded()
    _, numbers = split_episodes(5, 0.4, 0)
    environment = stand_in(data, num_envs)
    shown = environment.reset(seed=1).observation["observation"]
    episodes = [int(numbers[row % len(numbers)]) for row in range(num_envs)]
    at = [int(known.begins[each]) for each in episodes]
    turns = np.zeros(num_envs, int)
    for _ in range(30):
        expected = [known.columns["/observations/observation"][place] for place in at]
        np.testing.assert_array_equal(shown, expected)
        action = np.stack([known.columns["/actions"][place] for place in at])
        environment.send(action + np.array([0.5, 0], np.float32))
        answer = environment.recv()
        # by hand: (0.5 in half-ranges of 1)^2 for one of two elements
        np.testing.assert_allclose(answer.reward, -0.125, rtol=1e-5)
        for row, place in enumerate(at):
            ends = known.columns["/terminated"][place], known.columns["/truncated"][place]
            assert (answer.terminated[row], answer.truncated[row]) == ends
            np.testing.assert_array_equal(
                answer.observation["observation"][row],
                known.columns["/next_observations/observation"][place],
            )
            at[row] += 1
            if any(ends):
                turns[row] += 1
                place = row + turns[row] * num_envs
                at[row] = int(known.begins[numbers[place % len(numbers)]])
        shown = answer.first_observation["observation"]


def run(data, length, **changes):
    given = {
        "data": data,
        "held_out": 0.4,
        "agent": agent(),
        "environment": rl.HeldOutParameters(data=data, held_out=0.4),
        "schedule": rl.batch_schedule(length, every=length // 2, episodes=2),
    }
    return rl.BatchGraphManager(rl.BatchGraphParameters(**{**given, **changes}))


def test_evaluations_without_a_world_report_the_error_of_actions(data):
    cloning = rl.BCAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=200),
        learning=rl.LearningParameters(batch=8, learning_starts=1),
        update_mode="eager",
    )
    with run(data, 20, agent=cloning) as manager:
        records = [each for each in manager.improve() if each.kind == "evaluation"]
    assert [each.training_steps for each in records] == [10, 20]
    known = recorded()
    _, numbers = split_episodes(5, 0.4, 0)
    assert records[0].scalars["evaluation/length_mean"] == known.lengths[numbers].mean()
    assert all(each.scalars["evaluation/reward_mean"] < 0 for each in records)


def test_actions_without_a_described_space_are_fitted(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(
        path,
        observations=np.zeros((6, 2), np.float32),
        actions=np.array([0, 2, 1, 0, 2, 1]),
        rewards=np.zeros(6),
        terminals=np.array([0, 1, 0, 1, 0, 1]),
    )
    environment = rl.HeldOutParameters(data=str(path), held_out=0.4).build(num_envs=1)
    assert environment.spaces.action.n == 3
    environment.reset()
    place = environment._places[0]
    environment.send(np.array([[0, 2, 1, 0, 2, 1][place]]))
    assert environment.recv().reward == [0]


REFUSED = [
    ({"updates": 10}, "replays held-out episodes, where nothing is acted"),
    ({"split_seed": 3}, "by split_seed=0, and split_seed is 3; give both the same"),
    ({"held_out": 0.2}, "by held_out=0.4, and held_out is 0.2"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_stand_in_that_does_not_fit_is_refused(data, changes, message):
    check_refused(lambda: run(data, 4, **changes), ParameterError, message)
