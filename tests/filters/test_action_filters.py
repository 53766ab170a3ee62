"""Numbers worked out by hand, one block per filter; shared promises: test_filter_contract."""

import numpy as np
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import coach_rl as rl

ARM = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32))


@st.composite
def boxes(draw):
    """Bounded, mostly asymmetric Boxes of floats."""
    size = draw(st.integers(1, 3))
    numbers = st.floats(-100, 100, width=32)
    low = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), np.float32)
    widths = st.floats(0.125, 100, width=32)
    width = np.array(draw(st.lists(widths, min_size=size, max_size=size)), np.float32)
    return spaces.Box(low, low + width)


def test_bins_by_hand():
    stage = rl.BoxDiscretization(num_bins=(3, 2)).build(ARM)
    assert stage.agent_space == spaces.Discrete(6)
    np.testing.assert_array_equal(
        stage.apply(np.arange(6)),
        [[-1, 0], [-1, 0.5], [1, 0], [1, 0.5], [3, 0], [3, 0.5]],
    )
    # nearest: -0.1 is nearer to -1 than to 1; halfway (0) the lower one; outside: the border
    np.testing.assert_array_equal(
        stage.inverse(np.array([[-0.1, 0.3], [0.0, 0.25], [2.5, 9.0]])), [1, 0, 5]
    )


@settings(max_examples=60, deadline=None)
@given(boxes(), st.integers(2, 7))
def test_bins_include_both_bounds_and_come_back(space, num_bins):
    stage = rl.BoxDiscretization(num_bins=num_bins).build(space)
    actions = np.arange(stage.agent_space.n)
    sent = stage.apply(actions)
    np.testing.assert_array_equal(sent[0], space.low)
    np.testing.assert_array_equal(sent[-1], space.high)
    np.testing.assert_array_equal(stage.inverse(sent), actions)


def test_bins_of_whole_numbers():
    stage = rl.BoxDiscretization(num_bins=3).build(spaces.Box(0, 5, (1,), np.int64))
    np.testing.assert_array_equal(stage.apply(np.arange(3)), [[0], [2], [5]])


def test_masking_by_hand():
    stage = rl.BoxMasking(low=(0.0, 0.25), high=(1.0, 0.25)).build(ARM)
    np.testing.assert_array_equal(stage.agent_space.low, np.float32([0.0, 0.25]))
    np.testing.assert_array_equal(stage.agent_space.high, np.float32([1.0, 0.25]))
    given_actions = np.array([[0.5, 0.25], [-7.0, 0.5]], np.float32)
    np.testing.assert_array_equal(stage.apply(given_actions), [[0.5, 0.25], [0.0, 0.25]])


def test_full_map_numbers_everything():
    stage = rl.FullDiscreteActionSpaceMap().build(spaces.MultiDiscrete([2, 3], start=[0, 5]))
    np.testing.assert_array_equal(
        stage.apply(np.arange(6)), [[0, 5], [0, 6], [0, 7], [1, 5], [1, 6], [1, 7]]
    )
    stage = rl.FullDiscreteActionSpaceMap().build(spaces.MultiBinary(2))
    np.testing.assert_array_equal(stage.apply(np.arange(4)), [[0, 0], [0, 1], [1, 0], [1, 1]])
    stage = rl.FullDiscreteActionSpaceMap().build(spaces.Discrete(3, start=-1))
    np.testing.assert_array_equal(stage.apply(np.arange(3)), [-1, 0, 1])


def test_partial_map_by_hand():
    stage = rl.PartialDiscreteActionSpaceMap(target_actions=(4, 0, 2)).build(spaces.Discrete(5))
    np.testing.assert_array_equal(stage.apply(np.array([2, 0, 1])), [2, 4, 0])
    np.testing.assert_array_equal(stage.inverse(np.array([0, 2, 4])), [1, 2, 0])


def test_partial_map_of_a_box_comes_back_to_the_nearest():
    targets = ((-1.0, 0.0), (3.0, 0.5))
    stage = rl.PartialDiscreteActionSpaceMap(target_actions=targets).build(ARM)
    np.testing.assert_array_equal(stage.apply(np.array([1, 0])), [[3.0, 0.5], [-1.0, 0.0]])
    np.testing.assert_array_equal(stage.inverse(np.array([[0.5, 0.5], [2.0, 0.0]])), [0, 1])


def test_linear_map_by_hand_on_asymmetric_bounds():
    stage = rl.LinearBoxToBoxMap().build(ARM)
    assert stage.agent_space == spaces.Box(-1.0, 1.0, (2,), np.float32)
    np.testing.assert_array_equal(
        stage.apply(np.float32([[-1, -1], [0, 0], [1, 1], [0.5, -0.5], [8, -8]])),
        [[-1, 0], [1, 0.25], [3, 0.5], [2, 0.125], [3, 0]],
    )


@settings(max_examples=60, deadline=None)
@given(boxes(), st.integers(0, 1000))
def test_linear_map_hits_the_bounds_and_comes_back(space, seed):
    size = space.shape[0]
    stage = rl.LinearBoxToBoxMap(low=(-3.0,) * size, high=(0.5,) * size).build(space)
    ends = np.stack([stage.agent_space.low, stage.agent_space.high])
    np.testing.assert_array_equal(stage.apply(ends), [space.low, space.high])
    action = np.random.default_rng(seed).uniform(-3.0, 0.5, (5, size)).astype(np.float32)
    sent = stage.apply(action)
    assert ((sent >= space.low) & (sent <= space.high)).all()
    # one rounding of the environment's float32 numbers, seen from the agent's side
    largest = np.maximum(np.abs(space.low), np.abs(space.high))
    tolerance = 1e-6 + (2**-23 * largest * 3.5 / (space.high - space.low)).max()
    np.testing.assert_allclose(stage.inverse(sent), action, atol=tolerance)
