"""Gymnasium rows are saved by what they went through, and say so when that does not lead back."""

import copy
import gc
import statistics
import tracemalloc
import warnings

import numpy as np
import pytest
from failing_environments import TROUBLE

from coach_rl.core.errors import CheckpointError, CoachWarning
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.extensions.testing import assert_same_state
from tests.environments.walks import answer_to, assert_continues, assert_same_walks, walk


def build(level, num_envs=2, **options):
    return GymnasiumParameters(level=level, **options).build(num_envs=num_envs)


def test_workers_and_one_process_share_their_states():
    here = build("little_environments:Walk", 3)
    there = build(
        "little_environments:Walk", 3, vectorization="subprocess", processes=2, start_method="fork"
    )
    assert_continues(here, there, before=7, after=9)
    here.load_state_dict(there.state_dict())
    assert_same_walks(here, there, 9, seed=2)
    there.close()


def test_history_covers_the_unfinished_episode():
    environment = build("little_environments:Plain", 1)
    environment.reset(seed=0)
    lengths = []
    for _ in range(25):
        answer_to(environment, np.array([0]))
        lengths.append(environment.state_dict()["rows"]["0"]["steps"])
    assert lengths == [*range(1, 10), 0] * 2 + [1, 2, 3, 4, 5]


@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
def test_load_irreproducible_environment_error(vectorization):
    options = {"vectorization": vectorization, "start_method": "fork"}
    one = build("little_environments:OwnRandomness", **options)
    one.reset(seed=4)
    for _ in range(23):
        answer_to(one, np.zeros(2, np.int64))
    other = build("little_environments:OwnRandomness", **options)
    with pytest.raises(CheckpointError):
        other.load_state_dict(one.state_dict())
    other.reset(seed=1)
    one.close()
    other.close()


def test_load_state_kept_across_episodes_error():
    wrappers = ("gymnasium.wrappers:NormalizeObservation",)
    one = build("CartPole-v1", 1, wrappers=wrappers)
    one.reset(seed=4)
    walk(one, 60)
    with pytest.raises(CheckpointError):
        build("CartPole-v1", 1, wrappers=wrappers).load_state_dict(one.state_dict())


@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
def test_saved_actions_are_those_sent(vectorization):
    options = {"vectorization": vectorization, "start_method": "fork"}
    one, other = (build("little_environments:Rude", **options) for _ in range(2))
    one.reset(seed=3)
    walk(one, 11)  # four steps into the second episode
    state = one.state_dict()
    sent = {"push": np.full((2, 2), 0.75, np.float32), "gears": np.full((2, 2), 2)}
    answer_to(one, sent)
    after = one.state_dict()["rows"]["0"]
    assert after["steps"] == 5
    np.testing.assert_array_equal(after["actions"]["0"][-1], [2, 2])
    np.testing.assert_array_equal(after["actions"]["1"][-1], np.float32([0.75, 0.75]))
    saved = copy.deepcopy(state)
    other.load_state_dict(state)
    assert_same_state(state, saved)  # the replay changed its own actions alone
    answer_to(other, sent)
    assert_same_walks(one, other, 9)
    one.close()
    other.close()


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
@pytest.mark.parametrize(("resume", "most"), [("replay", 25), ("restart", 5)])
def test_history_memory_is_bounded_by_actions(resume, most, vectorization):
    environment = build(
        "little_environments:Endless",
        4,
        resume=resume,
        vectorization=vectorization,
        start_method="fork",
    )
    environment.reset(seed=0)
    actions = np.zeros((4, 2), np.float32)

    def traced_after(count):
        for _ in range(count):
            answer_to(environment, actions)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    traced = [traced_after(count) for count in (250, 500, 500, 500)]
    tracemalloc.stop()
    environment.close()
    # An action has 8 bytes. What grows with the steps does so in all three times; a cache that
    # Python or another thread fills meanwhile, in one of them.
    kept = statistics.median(np.diff(traced) / 2000)
    assert kept < most


def test_lost_worker_without_history_restarts_all_of_its_rows():
    environment = build(
        "failing_environments:Fails",
        4,
        kwargs={"how": "killed"},
        resume="restart",
        vectorization="subprocess",
        processes=2,
        start_method="fork",
    )
    environment.reset(seed=5)
    action = np.zeros(4, np.int64)
    for step in range(3):
        action[2] = TROUBLE if step == 2 else 0
        environment.send(action)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoachWarning)
            answer = environment.recv()
    assert answer.lost.tolist() == [False, False, True, True]  # rows 2 and 3 shared a worker
    environment.close()
