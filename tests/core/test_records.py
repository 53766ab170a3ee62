import dataclasses

import numpy as np
import pytest

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.infos import infos_with_same_keys
from coach_rl.core.records import End, EnvResponse, missed, take
from coach_rl.core.steps import EnvironmentSteps


def stepped():
    return EnvResponse.step(
        np.array([4, 0, 2]),
        observation={"observation": np.arange(3)},
        first_observation={"observation": np.arange(3) + 10},
        reward=np.array([0.0, 1.0, 2.0]),
        terminated=np.array([True, False, True]),
        truncated=np.array([True, False, False]),
        info={"x": np.arange(3) * 2},
    )


def test_step_response_lasts_one_and_has_the_reason_of_its_end():
    answer = stepped()
    assert answer.end.tolist() == [End.TERMINATED | End.TRUNCATED, 0, End.TERMINATED]
    assert answer.duration.tolist() == [1, 1, 1]
    assert (answer.end.dtype, answer.duration.dtype) == (np.uint8, np.int64)


def test_reset_response_has_all_rows_without_rewards():
    answer = EnvResponse.reset({"observation": np.arange(3)}, num_envs=3)
    assert answer.rows.tolist() == [0, 1, 2]
    assert answer.first_observation["observation"].tolist() == [0, 1, 2]
    for name in ("reward", "terminated", "truncated", "end", "duration"):
        assert not getattr(answer, name).any()
    assert answer.info == {}


@pytest.mark.parametrize(
    "index", [np.array([2, 0]), np.array([True, False, True]), slice(None, None, 2)]
)
def test_rows_of_index_selects_from_every_array(index):
    whole = stepped()
    part = whole.rows_of(index)
    for field in dataclasses.fields(part):
        left, right = getattr(part, field.name), getattr(whole, field.name)
        if field.name == "faults":  # the caller's, who knows which rows they are of
            assert left == ()
            continue
        pairs = [(left, right)]
        if isinstance(left, dict):
            pairs = [(left[key], right[key]) for key in right]
        for mine, all_of_it in pairs:
            np.testing.assert_array_equal(mine, all_of_it[index], err_msg=field.name)
    nothing = whole.empty_like()
    assert len(nothing) == 0
    assert nothing.info["x"].dtype == whole.info["x"].dtype


def test_end_reasons_combine_and_fit_a_byte():
    both = End.GOAL | End.TRUNCATED
    assert End.GOAL in both
    assert End.HORIZON not in both
    values = [int(end) for end in End]
    assert values == [1, 2, 4, 8, 16, 32, 64, 128]
    assert np.uint8(sum(values)) == 255


def test_take_selects_rows_by_numbers_masks_and_slices():
    observation = {"a": np.arange(4), "b": np.arange(8).reshape(4, 2)}
    by_number = take(observation, np.array([2, 0]))
    np.testing.assert_array_equal(by_number["a"], [2, 0])
    np.testing.assert_array_equal(by_number["b"], [[4, 5], [0, 1]])
    by_mask = take(observation, np.array([False, True, False, True]))
    np.testing.assert_array_equal(by_mask["b"], [[2, 3], [6, 7]])
    np.testing.assert_array_equal(take(observation, slice(1, 3))["a"], [1, 2])
    by_number["a"][:] = 9
    np.testing.assert_array_equal(observation["a"], [0, 1, 2, 3])


def test_clock_restored_keeps_its_own_plan():
    clock = Clock(
        phase=Phase.HEATUP,
        environment_steps=5,
        episodes=2,
        training_steps=7,
        planned=EnvironmentSteps(100),
    )
    state = clock.state_dict()
    clock.environment_steps += 1
    other = Clock(planned=EnvironmentSteps(400))
    other.load_state_dict(state)
    assert other == Clock(
        phase=Phase.HEATUP,
        environment_steps=5,
        episodes=2,
        training_steps=7,
        planned=EnvironmentSteps(400),
    )


def test_missed_goal_was_ended_by_the_level_alone():
    ends = [0, End.HORIZON, End.FAILURE, End.HORIZON | End.FAILURE]
    others = [End.HORIZON | each for each in End if each not in (End.HORIZON, End.FAILURE)]
    found = missed(np.array([*ends, *others], np.uint8))
    assert found.tolist() == [False, True, True, True, *[False] * len(others)]


def test_infos_of_some_rows_have_a_mask():
    both, some, none = (
        {"speed": np.array([1.0, 2.0]), "bonus": np.array([4, 5])},
        {"speed": np.array([3.0]), "bonus": np.array([0]), "_bonus": np.array([False])},
        {"speed": np.array([6.0])},
    )
    infos = infos_with_same_keys([both, some, none], [2, 1, 1])
    joined = {key: np.concatenate([info[key] for info in infos]).tolist() for key in infos[0]}
    assert joined == {
        "speed": [1.0, 2.0, 3.0, 6.0],
        "bonus": [4, 5, 0, 0],
        "_bonus": [True, True, False, False],
    }
