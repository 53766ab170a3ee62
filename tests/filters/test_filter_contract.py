"""What every filter promises, checked for every filter.

A new filter joins by a line in a case list; `test_every_public_filter_has_a_case` sees to it.
"""

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
import coach_rl.filters as filters
from coach_rl.core.errors import SpaceError
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.spaces import check_actions
from coach_rl.extensions import discrete_maps, image_filters
from coach_rl.filters import InputFilter, OutputFilter

VECTOR = spaces.Box(-2.0, 3.0, (4,), np.float64)
UNBOUNDED = spaces.Box(-np.inf, np.inf, (4,), np.float32)
IMAGE = spaces.Box(0, 255, (12, 10, 3), np.uint8)
FLOAT_IMAGE = spaces.Box(0.0, 1.0, (12, 10, 3), np.float32)
GREY = spaces.Box(0, 255, (12, 10), np.uint8)
NAMES = ("speed", "speed", "fuel", "health")
WRONG = spaces.Discrete(3)

# filter, a space that suits it, a space that doesn't
INPUT_CASES: list[tuple[Any, spaces.Box, Any]] = [
    (filters.ObservationClippingFilter(low=0.0), VECTOR, WRONG),
    (filters.ObservationClippingFilter(low=-3, high=300), GREY, WRONG),
    (rl.ObservationCropFilter(low=(2, 0, 0), high=(8, None, 2)), IMAGE, GREY),
    (filters.ObservationNormalizationFilter(), UNBOUNDED, WRONG),
    (filters.ObservationNormalizationFilter(clip=None), IMAGE, WRONG),
    (
        filters.ObservationReductionBySubPartsNameFilter(names=NAMES, sub_parts=("speed",)),
        VECTOR,
        GREY,
    ),
    (rl.ObservationRescaleSizeByFactorFilter(factor=0.5), IMAGE, VECTOR),
    (rl.ObservationRescaleToSizeFilter(height=5, width=7), FLOAT_IMAGE, VECTOR),
    (rl.ObservationRescaleToSizeFilter(height=20, width=20), GREY, WRONG),
    (rl.ObservationRGBToYFilter(), IMAGE, GREY),
    (rl.ObservationRGBToYFilter(), FLOAT_IMAGE, VECTOR),
    (filters.ObservationStackingFilter(stack_size=3), GREY, WRONG),
    (filters.ObservationStackingFilter(stack_size=2, axis=0), VECTOR, WRONG),
    (filters.ObservationStackingFilter(stack_size=2, differences=True), VECTOR, GREY),
    (rl.ObservationToUInt8Filter(low=-2.0, high=3.0), VECTOR, WRONG),
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
    (rl.BoxDiscretization(num_bins=(5, 3)), ARM, spaces.Box(-np.inf, np.inf, (2,))),
    (rl.BoxDiscretization(num_bins=3), spaces.Box(0, 9, (2, 2), np.int64), WRONG),
    (filters.BoxMasking(low=0.0, high=(1.0, 0.5)), ARM, spaces.Box(0.5, 1.0, (2,))),
    (rl.FullDiscreteActionSpaceMap(), spaces.MultiDiscrete([3, 2]), ARM),
    (rl.FullDiscreteActionSpaceMap(), spaces.MultiBinary(3), ARM),
    (rl.FullDiscreteActionSpaceMap(), spaces.Discrete(3, start=1), ARM),
    (rl.PartialDiscreteActionSpaceMap(target_actions=(4, 0)), spaces.Discrete(5), WRONG),
    (
        rl.PartialDiscreteActionSpaceMap(target_actions=((0.0, 0.0), (3.0, 0.5))),
        ARM,
        REGION,
    ),
    (filters.LinearBoxToBoxMap(), ARM, spaces.Box(-np.inf, 0.0, (2,))),
]

ROWS = 6


class Observations:
    """A filter of one observation; episodes start in the first batch, and in the third."""

    def __init__(self, parameters, space):
        self.parameters, self.space = parameters, space

    def build(self):
        chain = InputFilter(observation={"key": (self.parameters,)})
        return chain.build(spaces.Dict({"key": self.space}))

    def mapped(self, chain):
        return chain.observation_space["key"]

    def draw(self, number, rng):
        return draw(self.space, number, rng)

    def step(self, chain, memory, batch, rows, index, *, learn):
        starts = np.full(len(batch), index in (0, 2))
        return chain.observation(memory, rows, {"key": batch}, starts=starts, learn=learn)["key"]


class Rewards:
    """A filter of rewards; episodes end in turn."""

    def __init__(self, parameters):
        self.parameters = parameters

    def build(self):
        return InputFilter(reward=(self.parameters,)).build(spaces.Dict({}))

    def mapped(self, chain):
        return chain.reward_space

    def draw(self, number, rng):
        rewards = rng.normal(size=number)
        rewards.setflags(write=False)
        return rewards

    def step(self, chain, memory, batch, rows, index, *, learn):
        return chain.reward(memory, rows, batch, ends=rows % 3 == index % 3, learn=learn)


def draw(space, number, rng):
    """Random values of a space, [number, ...], read-only."""
    values = actions_from_uniform(space, rng.random((number, max(uniform_size(space), 1))))
    values = values.astype(space.dtype)
    values.setflags(write=False)
    return values


def ids(case):
    parameters = case[0] if isinstance(case, tuple) else getattr(case, "parameters", case)
    return type(parameters).__name__


INPUTS = [Observations(*case[:2]) for case in INPUT_CASES] + [Rewards(p) for p in REWARD_CASES]
input_cases = pytest.mark.parametrize("case", INPUTS, ids=ids)
action_cases = pytest.mark.parametrize("case", ACTION_CASES, ids=ids)
ALL = [case.parameters for case in INPUTS] + [case[0] for case in ACTION_CASES]


def run(case, chain, memory, batches, *, first=0, learn=True):
    """The filtered batches, of which the first one has that index."""
    return [
        case.step(chain, memory, batch, np.arange(len(batch)), index, learn=learn)
        for index, batch in enumerate(batches, first)
    ]


def seen(case, rng, batches=1):
    """A chain that has learned from some batches."""
    chain = case.build()
    run(case, chain, chain.new_rows(ROWS), [case.draw(ROWS, rng) for _ in range(batches)])
    return chain


def plain(state):
    return json.dumps(state, default=lambda value: value.tolist(), sort_keys=True)


def test_every_public_filter_has_a_case():
    named = {
        name
        for offered in (filters, image_filters, discrete_maps)
        for name in offered.__all__
        if dataclasses.is_dataclass(getattr(offered, name))
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


@input_cases
def test_input_filters_values_lie_in_the_mapped_space(case):
    chain = case.build()
    batches = [case.draw(ROWS, np.random.default_rng(seed)) for seed in range(4)]
    mapped = case.mapped(chain)
    for output in run(case, chain, chain.new_rows(ROWS), batches):
        assert output.dtype == mapped.dtype
        assert output.shape == (ROWS, *mapped.shape)
        check_actions(mapped, output)


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


@pytest.mark.parametrize(
    ("build", "case"),
    [
        *((lambda p, wrong: Observations(p, wrong).build(), case) for case in INPUT_CASES),
        *((lambda p, wrong: p.build(wrong), (p, None, WRONG)) for p in REWARD_CASES),
        *((lambda p, wrong: OutputFilter(action=(p,)).build(wrong), c) for c in ACTION_CASES),
    ],
)
def test_filters_wrong_space_error_names_the_filter(build, case):
    parameters, _, wrong = case
    with pytest.raises(SpaceError) as caught:
        build(parameters, wrong)
    assert type(parameters).__name__ in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("case", INPUTS[: len(INPUT_CASES)], ids=ids)
def test_observation_filters_given_space_is_unchanged(case):
    low, high = case.space.low.copy(), case.space.high.copy()
    seen(case, np.random.default_rng(0))
    np.testing.assert_array_equal(case.space.low, low)
    np.testing.assert_array_equal(case.space.high, high)


@input_cases
def test_input_filters_return_new_memory(case):
    chain = case.build()
    memory = chain.new_rows(ROWS)
    batch = case.draw(ROWS, np.random.default_rng(0))  # read-only: writing would raise
    (output,) = run(case, chain, memory, [batch])
    assert not np.shares_memory(output, batch)
    kept = output.copy()
    run(case, chain, memory, [case.draw(ROWS, np.random.default_rng(1))])
    np.testing.assert_array_equal(output, kept)


@input_cases
def test_input_filters_without_learning_change_no_statistic(case):
    rng = np.random.default_rng(0)
    chain = seen(case, rng)
    before = plain(chain.state_dict())
    batches = [case.draw(ROWS, rng) for _ in range(2)]
    first = run(case, chain, chain.new_rows(ROWS), batches, learn=False)
    second = run(case, chain, chain.new_rows(ROWS), batches, learn=False)
    assert plain(chain.state_dict()) == before
    np.testing.assert_array_equal(first, second)


@input_cases
def test_input_filters_loaded_continue_bit_for_bit(case):
    rng = np.random.default_rng(0)
    batches = [case.draw(ROWS, rng) for _ in range(5)]
    chain, other = case.build(), case.build()
    memory = chain.new_rows(ROWS)
    run(case, chain, memory, batches[:3])
    saved, saved_memory = chain.state_dict(), {name: a.copy() for name, a in memory.items()}
    expected = run(case, chain, memory, batches[3:], first=3)
    other.load_state_dict(saved)
    np.testing.assert_array_equal(run(case, other, saved_memory, batches[3:], first=3), expected)
    assert plain(other.state_dict()) == plain(chain.state_dict())


@input_cases
def test_input_filters_loaded_filter_alike_at_once(case):
    rng = np.random.default_rng(0)
    chain, other = seen(case, rng, batches=3), case.build()
    other.load_state_dict(chain.state_dict())
    batches = [case.draw(ROWS, rng)]
    np.testing.assert_array_equal(
        run(case, other, other.new_rows(ROWS), batches, learn=False),
        run(case, chain, chain.new_rows(ROWS), batches, learn=False),
    )


@input_cases
def test_input_filters_many_rows_equal_single_ones(case):
    rng = np.random.default_rng(0)
    chain = seen(case, rng)
    batches = [case.draw(ROWS, rng) for _ in range(4)]
    together = run(case, chain, chain.new_rows(ROWS), batches, learn=False)
    memory = chain.new_rows(ROWS)
    for index, batch in enumerate(batches):
        for row in reversed(range(ROWS)):
            one = batch[row : row + 1]
            alone = case.step(chain, memory, one, np.array([row]), index, learn=False)
            np.testing.assert_array_equal(alone[0], together[index][row])


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


@input_cases
def test_input_filters_no_rows_change_nothing(case):
    chain = seen(case, np.random.default_rng(0))
    before = plain(chain.state_dict())
    (output,) = run(case, chain, chain.new_rows(ROWS), [case.draw(0, np.random.default_rng(0))])
    assert output.shape == (0, *case.mapped(chain).shape)
    assert plain(chain.state_dict()) == before


@action_cases
def test_no_actions_at_all(case):
    parameters, space, _ = case
    chain = OutputFilter(action=(parameters,)).build(space)
    sent = chain.apply(draw(chain.agent_space, 0, np.random.default_rng(0)))
    assert sent.shape == (0, *space.shape)
    assert chain.inverse(sent).shape == (0, *chain.agent_space.shape)
