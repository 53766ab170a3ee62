"""What every filter promises, checked for every filter.

A new filter joins by a line in a case list; `test_every_public_filter_has_a_case` sees to it.
"""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from typeguard import check_type

import coach_rl.filters as filters
from coach_rl.core.errors import CheckpointError, SpaceError
from coach_rl.core.interfaces import InputFilterParameters, OutputFilterParameters
from coach_rl.core.spaces import actions_from_uniform, check_actions, uniform_size
from coach_rl.filters import InputFilter, OutputFilter

VECTOR = spaces.Box(-2.0, 3.0, (4,), np.float64)
UNBOUNDED = spaces.Box(-np.inf, np.inf, (4,), np.float32)
IMAGE = spaces.Box(0, 255, (12, 10, 3), np.uint8)
FLOAT_IMAGE = spaces.Box(0.0, 1.0, (12, 10, 3), np.float32)
GREY = spaces.Box(0, 255, (12, 10), np.uint8)
TALL = spaces.Box(-1.0, 1.0, (1, 4, 1), np.float32)
REWARD = spaces.Box(-np.inf, np.inf, (), np.float64)
NAMES = ("speed", "speed", "fuel", "health")
WRONG = spaces.Discrete(3)

# filter, a space that suits it, a space that doesn't
INPUT_CASES: list[tuple[Any, spaces.Box, Any]] = [
    (filters.ObservationClippingFilter(low=0.0), VECTOR, WRONG),
    (filters.ObservationClippingFilter(low=-3, high=300), GREY, WRONG),
    (filters.ObservationCropFilter(low=(2, 0, 0), high=(8, None, 2)), IMAGE, GREY),
    (filters.ObservationNormalizationFilter(), UNBOUNDED, WRONG),
    (filters.ObservationNormalizationFilter(clip=None), IMAGE, WRONG),
    (
        filters.ObservationReductionBySubPartsNameFilter(names=NAMES, sub_parts=("speed",)),
        VECTOR,
        GREY,
    ),
    (filters.ObservationRescaleSizeByFactorFilter(factor=0.5), IMAGE, VECTOR),
    (filters.ObservationRescaleToSizeFilter(height=5, width=7), FLOAT_IMAGE, VECTOR),
    (filters.ObservationRescaleToSizeFilter(height=20, width=20), GREY, WRONG),
    (filters.ObservationRGBToYFilter(), IMAGE, GREY),
    (filters.ObservationRGBToYFilter(), FLOAT_IMAGE, VECTOR),
    (filters.ObservationStackingFilter(stack_size=3), GREY, WRONG),
    (filters.ObservationStackingFilter(stack_size=2, axis=0), VECTOR, WRONG),
    (filters.ObservationToUInt8Filter(low=-2.0, high=3.0), VECTOR, WRONG),
]
REWARD_CASES: list[Any] = [
    filters.RewardClippingFilter(low=0.0, high=1.0),
    filters.RewardNormalizationFilter(),
    filters.RewardRescaleFilter(factor=-2.0),
    filters.RewardReturnScalingFilter(),
]
ARM = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32))
REGION = spaces.Box(0.0, 10.0, (4,), np.float32)
ACTION_CASES: list[tuple[Any, Any, Any]] = [
    (filters.BoxDiscretization(num_bins=(5, 3)), ARM, spaces.Box(-np.inf, np.inf, (2,))),
    (filters.BoxDiscretization(num_bins=3), spaces.Box(0, 9, (2, 2), np.int64), WRONG),
    (filters.BoxMasking(low=0.0, high=(1.0, 0.5)), ARM, spaces.Box(0.5, 1.0, (2,))),
    (filters.FullDiscreteActionSpaceMap(), spaces.MultiDiscrete([3, 2]), ARM),
    (filters.FullDiscreteActionSpaceMap(), spaces.MultiBinary(3), ARM),
    (
        filters.FullDiscreteActionSpaceMap(target_actions=(3, 1, 2)),
        spaces.Discrete(3, start=1),
        WRONG,
    ),
    (filters.PartialDiscreteActionSpaceMap(target_actions=(4, 0)), spaces.Discrete(5), WRONG),
    (
        filters.PartialDiscreteActionSpaceMap(target_actions=((0.0, 0.0), (3.0, 0.5))),
        ARM,
        REGION,
    ),
    (filters.LinearBoxToBoxMap(), ARM, spaces.Box(-np.inf, 0.0, (2,))),
]

ROWS = 6


def observation_chain(parameters, space):
    return InputFilter(observation={"key": (parameters,)}).build(spaces.Dict({"key": space}))


def reward_chain(parameters):
    return InputFilter(reward=(parameters,)).build(spaces.Dict({}))


def draw(space, number, rng):
    """Random values of a space, [number, ...], read-only."""
    values = actions_from_uniform(space, rng.random((number, max(uniform_size(space), 1))))
    values = values.astype(space.dtype)
    values.setflags(write=False)
    return values


def ids(case):
    parameters = case[0] if isinstance(case, tuple) else case
    return type(parameters).__name__


observation_cases = pytest.mark.parametrize("case", INPUT_CASES, ids=ids)
reward_cases = pytest.mark.parametrize("parameters", REWARD_CASES, ids=ids)
action_cases = pytest.mark.parametrize("case", ACTION_CASES, ids=ids)
ALL = [case[0] for case in INPUT_CASES] + REWARD_CASES + [case[0] for case in ACTION_CASES]


def run_observations(chain, memory, batches, *, starts_at=(), learn=True):
    outputs = []
    for index, batch in enumerate(batches):
        rows = np.arange(len(batch))
        starts = np.full(len(batch), index == 0 or index in starts_at)
        outputs.append(
            chain.observation(memory, rows, {"key": batch}, starts=starts, learn=learn)["key"]
        )
    return outputs


def run_rewards(chain, memory, batches, *, learn=True):
    return [
        chain.reward(
            memory,
            np.arange(len(batch)),
            batch,
            ends=np.arange(len(batch)) % 3 == index % 3,
            learn=learn,
        )
        for index, batch in enumerate(batches)
    ]


def plain(state):
    return json.dumps(state, default=lambda value: value.tolist(), sort_keys=True)


def test_every_public_filter_has_a_case():
    named = {
        name
        for name in filters.__all__
        if dataclasses.is_dataclass(getattr(filters, name))
        and name not in ("InputFilter", "OutputFilter")
    }
    assert {type(parameters).__name__ for parameters in ALL} == named
    assert len(named) == 18


@pytest.mark.parametrize("parameters", ALL, ids=ids)
def test_parameters_are_plain_frozen_values(parameters):
    with pytest.raises(dataclasses.FrozenInstanceError):
        parameters.anything = 1
    assert dataclasses.replace(parameters) == parameters
    assert hash(dataclasses.replace(parameters)) == hash(parameters)
    fields = {
        field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)
    }
    json.dumps(fields, allow_nan=False)


@observation_cases
def test_observations_lie_in_the_mapped_space(case):
    parameters, space, _ = case
    chain = observation_chain(parameters, space)
    batches = [draw(space, ROWS, np.random.default_rng(seed)) for seed in range(4)]
    for output in run_observations(chain, chain.new_rows(ROWS), batches):
        mapped = chain.observation_space["key"]
        assert output.dtype == mapped.dtype
        assert output.shape == (ROWS, *mapped.shape)
        check_actions(mapped, output)


@reward_cases
def test_rewards_lie_in_the_mapped_space(parameters):
    chain = reward_chain(parameters)
    batches = [np.random.default_rng(seed).normal(size=ROWS) for seed in range(4)]
    for output in run_rewards(chain, chain.new_rows(ROWS), batches):
        assert output.dtype == np.float64
        assert output.shape == (ROWS,)
        check_actions(chain.reward_space, output)


@action_cases
def test_actions_lie_in_the_environments_space(case):
    parameters, space, _ = case
    chain = OutputFilter(action=(parameters,)).build(space)
    action = draw(chain.agent_space, 50, np.random.default_rng(0))
    sent = chain.apply(action)
    assert sent.dtype == space.dtype
    check_actions(space, sent)


@action_cases
def test_actions_come_back(case):
    parameters, space, _ = case
    chain = OutputFilter(action=(parameters,)).build(space)
    action = draw(chain.agent_space, 50, np.random.default_rng(1))
    back = chain.inverse(chain.apply(action))
    check_actions(chain.agent_space, back)
    if isinstance(chain.agent_space, spaces.Discrete):
        np.testing.assert_array_equal(back, action)
    else:
        np.testing.assert_allclose(back, action, atol=1e-6)


@observation_cases
def test_wrong_observation_space_is_a_clear_error(case):
    parameters, _, wrong = case
    with pytest.raises(SpaceError) as caught:
        observation_chain(parameters, wrong)
    assert type(parameters).__name__ in str(caught.value)
    assert "observation 'key'" in str(caught.value)
    assert "\n" not in str(caught.value)


@reward_cases
def test_wrong_reward_space_is_a_clear_error(parameters):
    with pytest.raises(SpaceError, match=type(parameters).__name__):
        parameters.build(WRONG)


@action_cases
def test_wrong_action_space_is_a_clear_error(case):
    parameters, _, wrong = case
    with pytest.raises(SpaceError) as caught:
        OutputFilter(action=(parameters,)).build(wrong)
    assert type(parameters).__name__ in str(caught.value)
    assert "\n" not in str(caught.value)


@observation_cases
def test_building_leaves_the_given_space_alone(case):
    parameters, space, _ = case
    low, high = space.low.copy(), space.high.copy()
    chain = observation_chain(parameters, space)
    run_observations(chain, chain.new_rows(2), [draw(space, 2, np.random.default_rng(0))])
    np.testing.assert_array_equal(space.low, low)
    np.testing.assert_array_equal(space.high, high)


@observation_cases
def test_observations_come_out_in_new_memory(case):
    parameters, space, _ = case
    chain = observation_chain(parameters, space)
    memory = chain.new_rows(ROWS)
    batch = draw(space, ROWS, np.random.default_rng(0))  # read-only: writing would raise
    before = batch.copy()
    (output,) = run_observations(chain, memory, [batch])
    np.testing.assert_array_equal(batch, before)
    assert not np.shares_memory(output, batch)
    kept = output.copy()
    run_observations(chain, memory, [draw(space, ROWS, np.random.default_rng(1))])
    np.testing.assert_array_equal(output, kept)


@reward_cases
def test_rewards_come_out_in_new_memory(parameters):
    chain = reward_chain(parameters)
    batch = np.linspace(-1.0, 1.0, ROWS)
    batch.setflags(write=False)
    (output,) = run_rewards(chain, chain.new_rows(ROWS), [batch])
    assert not np.shares_memory(output, batch)


@observation_cases
def test_observations_without_learning_change_no_statistic(case):
    parameters, space, _ = case
    chain = observation_chain(parameters, space)
    rng = np.random.default_rng(0)
    run_observations(chain, chain.new_rows(ROWS), [draw(space, ROWS, rng)])
    before = plain(chain.state_dict())
    batches = [draw(space, ROWS, rng) for _ in range(2)]
    first = run_observations(chain, chain.new_rows(ROWS), batches, learn=False)
    second = run_observations(chain, chain.new_rows(ROWS), batches, learn=False)
    assert plain(chain.state_dict()) == before
    np.testing.assert_array_equal(first, second)


@reward_cases
def test_rewards_without_learning_change_no_statistic(parameters):
    chain = reward_chain(parameters)
    rng = np.random.default_rng(0)
    run_rewards(chain, chain.new_rows(ROWS), [rng.normal(size=ROWS)])
    before = plain(chain.state_dict())
    batches = [rng.normal(size=ROWS) for _ in range(2)]
    first = run_rewards(chain, chain.new_rows(ROWS), batches, learn=False)
    second = run_rewards(chain, chain.new_rows(ROWS), batches, learn=False)
    assert plain(chain.state_dict()) == before
    np.testing.assert_array_equal(first, second)


@observation_cases
def test_observations_saved_and_loaded_go_on_bit_for_bit(case):
    parameters, space, _ = case
    rng = np.random.default_rng(0)
    batches = [draw(space, ROWS, rng) for _ in range(5)]
    chain = observation_chain(parameters, space)
    memory = chain.new_rows(ROWS)
    run_observations(chain, memory, batches[:3])
    saved, saved_memory = chain.state_dict(), {name: a.copy() for name, a in memory.items()}
    expected = [
        chain.observation(
            memory, np.arange(ROWS), {"key": b}, starts=np.zeros(ROWS, bool), learn=True
        )
        for b in batches[3:]
    ]
    other = observation_chain(parameters, space)
    other.load_state_dict(saved)
    got = [
        other.observation(
            saved_memory, np.arange(ROWS), {"key": b}, starts=np.zeros(ROWS, bool), learn=True
        )
        for b in batches[3:]
    ]
    np.testing.assert_array_equal([a["key"] for a in got], [a["key"] for a in expected])
    assert plain(other.state_dict()) == plain(chain.state_dict())


@reward_cases
def test_rewards_saved_and_loaded_go_on_bit_for_bit(parameters):
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=ROWS) for _ in range(5)]
    chain = reward_chain(parameters)
    memory = chain.new_rows(ROWS)
    run_rewards(chain, memory, batches[:3])
    saved, saved_memory = chain.state_dict(), {name: a.copy() for name, a in memory.items()}
    expected = run_rewards(chain, memory, batches[3:])
    other = reward_chain(parameters)
    other.load_state_dict(saved)
    np.testing.assert_array_equal(run_rewards(other, saved_memory, batches[3:]), expected)
    assert plain(other.state_dict()) == plain(chain.state_dict())


@observation_cases
def test_observations_are_filtered_alike_right_after_loading(case):
    parameters, space, _ = case
    rng = np.random.default_rng(0)
    chain, other = observation_chain(parameters, space), observation_chain(parameters, space)
    run_observations(chain, chain.new_rows(ROWS), [draw(space, ROWS, rng) for _ in range(3)])
    other.load_state_dict(chain.state_dict())
    batches = [draw(space, ROWS, rng)]
    np.testing.assert_array_equal(
        run_observations(other, other.new_rows(ROWS), batches, learn=False),
        run_observations(chain, chain.new_rows(ROWS), batches, learn=False),
    )


@reward_cases
def test_rewards_are_filtered_alike_right_after_loading(parameters):
    rng = np.random.default_rng(0)
    chain, other = reward_chain(parameters), reward_chain(parameters)
    run_rewards(chain, chain.new_rows(ROWS), [rng.normal(size=ROWS) for _ in range(3)])
    other.load_state_dict(chain.state_dict())
    batches = [rng.normal(size=ROWS)]
    np.testing.assert_array_equal(
        run_rewards(other, other.new_rows(ROWS), batches, learn=False),
        run_rewards(chain, chain.new_rows(ROWS), batches, learn=False),
    )


@observation_cases
def test_many_observations_equal_single_ones(case):
    parameters, space, _ = case
    rng = np.random.default_rng(0)
    chain = observation_chain(parameters, space)
    run_observations(chain, chain.new_rows(ROWS), [draw(space, ROWS, rng)])
    batches = [draw(space, ROWS, rng) for _ in range(4)]
    together = run_observations(chain, chain.new_rows(ROWS), batches, starts_at=(2,), learn=False)
    memory = chain.new_rows(ROWS)
    for step, batch in enumerate(batches):
        for row in reversed(range(ROWS)):
            alone = chain.observation(
                memory,
                np.array([row]),
                {"key": batch[row : row + 1]},
                starts=np.array([step in (0, 2)]),
                learn=False,
            )
            np.testing.assert_array_equal(alone["key"][0], together[step][row])


@reward_cases
def test_many_rewards_equal_single_ones(parameters):
    rng = np.random.default_rng(0)
    chain = reward_chain(parameters)
    run_rewards(chain, chain.new_rows(ROWS), [rng.normal(size=ROWS)])
    batches = [rng.normal(size=ROWS) for _ in range(4)]
    together = run_rewards(chain, chain.new_rows(ROWS), batches, learn=False)
    memory = chain.new_rows(ROWS)
    for step, batch in enumerate(batches):
        for row in reversed(range(ROWS)):
            alone = chain.reward(
                memory,
                np.array([row]),
                batch[row : row + 1],
                ends=np.array([row % 3 == step % 3]),
                learn=False,
            )
            np.testing.assert_array_equal(alone[0], together[step][row])


@action_cases
def test_many_actions_equal_single_ones_and_are_not_written_to(case):
    parameters, space, _ = case
    chain = OutputFilter(action=(parameters,)).build(space)
    action = draw(chain.agent_space, ROWS, np.random.default_rng(2))  # read-only
    sent = chain.apply(action)
    assert not np.shares_memory(sent, action)
    sent.setflags(write=False)
    back = chain.inverse(sent)
    for row in range(ROWS):
        np.testing.assert_array_equal(chain.apply(action[row : row + 1])[0], sent[row])
        np.testing.assert_array_equal(chain.inverse(sent[row : row + 1])[0], back[row])


@observation_cases
def test_no_observations_at_all(case):
    parameters, space, _ = case
    chain = observation_chain(parameters, space)
    memory = chain.new_rows(ROWS)
    run_observations(chain, memory, [draw(space, ROWS, np.random.default_rng(0))])
    before = plain(chain.state_dict())
    (output,) = run_observations(chain, memory, [draw(space, 0, np.random.default_rng(0))])
    assert output.shape == (0, *chain.observation_space["key"].shape)
    assert plain(chain.state_dict()) == before


@reward_cases
def test_no_rewards_at_all(parameters):
    chain = reward_chain(parameters)
    before = plain(chain.state_dict())
    (output,) = run_rewards(chain, chain.new_rows(ROWS), [np.zeros(0)])
    assert output.shape == (0,)
    assert plain(chain.state_dict()) == before


@action_cases
def test_no_actions_at_all(case):
    parameters, space, _ = case
    chain = OutputFilter(action=(parameters,)).build(space)
    sent = chain.apply(draw(chain.agent_space, 0, np.random.default_rng(0)))
    assert sent.shape == (0, *space.shape)
    assert chain.inverse(sent).shape == (0, *chain.agent_space.shape)


@pytest.mark.parametrize("parameters", REWARD_CASES[1::2], ids=ids)
def test_a_state_of_other_filters_is_refused(parameters):
    saved = reward_chain(parameters).state_dict()
    with pytest.raises(CheckpointError, match=r"InputFilter\.reward"):
        reward_chain(filters.RewardRescaleFilter(factor=2.0)).load_state_dict(saved)


def test_chains_fulfil_the_protocols():
    input_filter = InputFilter(
        observation={"key": (filters.ObservationNormalizationFilter(),)},
        reward=(filters.RewardRescaleFilter(factor=2.0),),
    )
    output_filter = OutputFilter(action=(filters.LinearBoxToBoxMap(),))
    check_type(input_filter, InputFilterParameters)
    check_type(output_filter, OutputFilterParameters)
