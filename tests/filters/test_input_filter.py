import dataclasses

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl

SPACE = spaces.Dict(
    {
        "camera": spaces.Box(0, 255, (4, 4), np.uint8),
        "joints": spaces.Box(-np.inf, np.inf, (3,), np.float64),
    }
)
PARAMETERS = rl.InputFilter(
    observation={
        "camera": (
            rl.ObservationRescaleToSizeFilter(height=2, width=2),
            rl.ObservationStackingFilter(),
        ),
        "joints": (
            rl.ObservationClippingFilter(low=-10.0, high=10.0),
            rl.ObservationNormalizationFilter(),
            rl.ObservationStackingFilter(stack_size=2),
        ),
    },
    reward=(rl.RewardReturnScalingFilter(),),
)


def observe(chain, memory, keys=("camera", "joints"), *, seed=0, rows=2, start=True, learn=True):
    rng = np.random.default_rng(seed)
    observation = {
        "camera": rng.integers(0, 256, (rows, 4, 4)).astype(np.uint8),
        "joints": rng.normal(size=(rows, 3)),
    }
    return chain.observation(
        memory,
        np.arange(rows),
        {key: observation[key] for key in keys},
        starts=np.full(rows, start),
        learn=learn,
    )


def test_filters_follow_each_other():
    chain = PARAMETERS.build(SPACE)
    assert chain.observation_space["camera"].shape == (2, 2, 4)
    assert chain.observation_space["joints"].shape == (3, 2)
    assert chain.observation_space["joints"].dtype == np.float32
    output = observe(chain, chain.new_rows(2))
    assert output["camera"].shape == (2, 2, 2, 4)
    assert output["joints"].shape == (2, 3, 2)


def test_the_mapping_is_a_frozen_copy():
    filters = {"joints": [rl.ObservationNormalizationFilter()]}
    parameters = rl.InputFilter(observation=filters, reward=[rl.RewardClippingFilter(low=0)])
    filters.clear()
    assert parameters.observation == {"joints": (rl.ObservationNormalizationFilter(),)}
    assert parameters.reward == (rl.RewardClippingFilter(low=0),)
    with pytest.raises(TypeError):
        parameters.observation["joints"] = ()
    assert parameters == dataclasses.replace(parameters)
    assert parameters != dataclasses.replace(parameters, reward=())


def test_two_chains_of_the_same_description_share_nothing():
    one, other = PARAMETERS.build(SPACE), PARAMETERS.build(SPACE)
    observe(one, one.new_rows(2))
    assert one.state_dict()["observation"]["joints"]["1"]["count"] == 2
    assert other.state_dict()["observation"]["joints"]["1"]["count"] == 0


def test_keys_may_be_left_out_and_do_not_touch_each_other():
    chain = PARAMETERS.build(SPACE)
    memory = chain.new_rows(2)
    before = memory["observation/camera/1/frames"].copy()
    output = observe(chain, memory, keys=("joints",))
    assert set(output) == {"joints"}
    np.testing.assert_array_equal(memory["observation/camera/1/frames"], before)


def test_keys_without_filters_are_copied():
    chain = rl.InputFilter().build(SPACE)
    assert chain.observation_space == SPACE
    assert chain.new_rows(3) == {}
    camera = np.zeros((1, 4, 4), np.uint8)
    output = chain.observation(
        {}, np.array([0]), {"camera": camera}, starts=np.array([True]), learn=True
    )
    camera += 1
    assert output["camera"].sum() == 0


def test_a_chain_tells_what_it_changes():
    untouched = rl.InputFilter(observation={"camera": ()}).build(SPACE)
    assert (untouched.changed_keys, untouched.changes_reward) == (set(), False)
    one = rl.InputFilter(observation={"joints": (rl.ObservationClippingFilter(low=-1e9),)}).build(
        SPACE
    )
    assert (one.changed_keys, one.changes_reward) == ({"joints"}, False)
    chain = PARAMETERS.build(SPACE)
    assert (chain.changed_keys, chain.changes_reward) == ({"camera", "joints"}, True)


def test_the_memory_is_named_and_advanced_in_place():
    chain = PARAMETERS.build(SPACE)
    memory = chain.new_rows(5)
    assert {name: array.shape for name, array in memory.items()} == {
        "observation/camera/1/frames": (5, 4, 2, 2),
        "observation/joints/2/frames": (5, 2, 3),
        "reward/0/discounted_return": (5,),
        "reward/0/ended": (5,),
    }
    arrays = dict(memory)
    observe(chain, memory)
    assert all(memory[name] is array for name, array in arrays.items())
    assert memory["observation/joints/2/frames"][:2].any()
    assert not memory["observation/joints/2/frames"][2:].any()


def test_training_and_evaluation_share_statistics_and_nothing_else():
    chain = PARAMETERS.build(SPACE)
    training, evaluation = chain.new_rows(2), chain.new_rows(2)
    first = observe(chain, training, seed=1)
    kept = {name: array.copy() for name, array in training.items()}
    for seed in range(5):
        observe(chain, evaluation, seed=seed, start=seed == 0, learn=False)
    for name, array in training.items():
        np.testing.assert_array_equal(array, kept[name])
    again = observe(chain, chain.new_rows(2), seed=1, learn=False)
    np.testing.assert_array_equal(first["joints"], again["joints"])
