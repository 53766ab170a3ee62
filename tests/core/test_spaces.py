import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.box_ranges import clipped_to_space
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.equal_spaces import cast_tolerance, loss_of_cast, meaning_of
from coach_rl.core.errors import ActionError
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.spaces import check_actions

INFINITY = np.float32(np.inf)
DICT = spaces.Dict({"move": spaces.Box(-1, 1, (2,)), "grip": spaces.Discrete(3)})
ALL = [
    spaces.Discrete(4),
    spaces.Discrete(4, start=10),
    spaces.MultiDiscrete([2, 5]),
    spaces.MultiDiscrete([2, 5], start=[-4, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 5]]),
    spaces.MultiBinary(3),
    spaces.Box(-2, 3, (2,), np.float32),
    spaces.Box(-2, 3, (2, 2), np.float64),
    spaces.Box(-2, 3, (2,), np.int32),
    spaces.Box(0, 255, (2,), np.uint8),
    spaces.Box(-np.inf, np.inf, (2,)),
    spaces.Box(np.array([0, -np.inf], np.float32), np.array([np.inf, 1], np.float32)),
    DICT,
]


def uniform(space, rows, seed=0):
    return np.random.default_rng(seed).random((rows, uniform_size(space)), np.float32)


@pytest.mark.parametrize("space", ALL, ids=str)
def test_actions_from_uniform_lie_in_the_space_at_the_edges_too(space):
    size = uniform_size(space)
    edges = np.array([[0.0] * size, [1 - 2**-24] * size], np.float32)
    actions = actions_from_uniform(space, np.concatenate([edges, uniform(space, 200)]))
    check_actions(space, actions)
    for row in (0, 1, 2, 150):
        one = {k: v[row] for k, v in actions.items()} if isinstance(actions, dict) else actions[row]
        assert space.contains(one if isinstance(one, dict | np.ndarray) else one.item())


@pytest.mark.parametrize(
    "box",
    [
        spaces.Box(-np.finfo(np.float32).max, np.finfo(np.float32).max, (1,)),
        spaces.Box(-1e300, 1e300, (1,), np.float64),
        spaces.Box(-np.finfo(np.float64).max, np.finfo(np.float64).max, (1,), np.float64),
    ],
    ids=str,
)
def test_actions_from_uniform_cover_a_box_whose_width_overflows(box):
    numbers = np.array([[0.0], [0.25], [0.5], [0.75]], np.float32)
    expected = box.high * np.array([[-1.0], [-0.5], [0.0], [0.5]], box.dtype)
    np.testing.assert_allclose(actions_from_uniform(box, numbers), expected, rtol=1e-6)


def test_actions_from_uniform_discrete_shares_are_equal():
    noise = ((np.arange(1000) + 0.5) / 1000)[:, None]
    counts = np.bincount(actions_from_uniform(spaces.Discrete(4), noise))
    np.testing.assert_array_equal(counts, [250] * 4)
    whole = actions_from_uniform(spaces.Box(-2, 2, (1,), np.int8), noise)[:, 0]
    np.testing.assert_array_equal(np.unique(whole, return_counts=True)[1], [200] * 5)
    choices = actions_from_uniform(spaces.MultiDiscrete([2, 5]), np.repeat(noise, 2, axis=1))
    np.testing.assert_array_equal(np.bincount(choices[:, 0]), [500] * 2)
    np.testing.assert_array_equal(np.bincount(choices[:, 1]), [200] * 5)
    bits = actions_from_uniform(spaces.MultiBinary(1), noise)
    assert bits.sum() == 500


def test_actions_from_uniform_box_sides_follow_their_bounds():
    low = np.array([-2, -np.inf, 5, -np.inf], np.float32)
    high = np.array([2, np.inf, np.inf, 7], np.float32)
    box = spaces.Box(low, high)
    # at u = 3/4: -2 + 3/4 * 4; logistic log(3); exponential 5 + log 4; 7 - log 4
    expected = [1.0, np.log(3), 5 + np.log(4), 7 - np.log(4)]
    actions = actions_from_uniform(box, np.full((1, 4), 0.75))
    np.testing.assert_allclose(actions[0], expected, rtol=1e-6)
    assert actions.dtype == np.float32


def test_actions_from_uniform_dict_uses_its_numbers_part_by_part():
    noise = np.array([[0.0, 0.5, 0.75]])
    parts = {
        key: noise[:, columns] for key, columns in zip(DICT.spaces, ([0], [1, 2]), strict=True)
    }
    assert list(parts) == ["grip", "move"]
    actions = actions_from_uniform(DICT, noise)
    np.testing.assert_array_equal(actions["grip"], [0])
    np.testing.assert_array_equal(actions["move"], [[0.0, 0.5]])
    assert uniform_size(DICT) == 3


@pytest.mark.parametrize("space", [*ALL, spaces.Discrete(2, start=-3)], ids=str)
def test_check_actions_sampled_ones_pass(space):
    space.seed(0)
    samples = [space.sample() for _ in range(20)]
    if isinstance(space, spaces.Dict):
        check_actions(space, {key: np.stack([s[key] for s in samples]) for key in space})
    else:
        check_actions(space, np.stack(samples))


def test_clipped_to_space_changes_boxes_alone():
    box = spaces.Box(np.array([-1, 0], np.float32), np.array([1, INFINITY], np.float32))
    given = np.array([[-3.0, -3.0], [3.0, 3.0]])
    clipped = clipped_to_space(box, given)
    np.testing.assert_array_equal(clipped, [[-1, 0], [1, 3]])
    assert clipped.dtype == np.float32
    np.testing.assert_array_equal(given, [[-3, -3], [3, 3]])
    parts = clipped_to_space(DICT, {"move": given, "grip": np.array([7, 8])})
    np.testing.assert_array_equal(parts["move"], [[-1, -1], [1, 1]])
    np.testing.assert_array_equal(parts["grip"], [7, 8])


def test_first_action_discrete_is_its_start():
    assert first_action(spaces.Discrete(3, start=-2)) == -2
    np.testing.assert_array_equal(first_action(spaces.MultiDiscrete([2, 3], start=[4, 5])), [4, 5])
    assert first_action(spaces.Box(2, 3, (4,))) == 0


FAR = spaces.Box(np.float32([5e6, 0, 1]), np.float32([5.001e6, np.inf, 1]))
"""A range of 1,000 far from 0, one without an end, and one without a width."""


@pytest.mark.parametrize(
    ("values", "dtype", "lost"),
    [
        (np.int64([1, 300]), np.int8, (1, "300 (int64), which int8 makes 44")),
        (np.int64([[1], [2], [-1]]), np.uint8, (2, "-1 (int64), which uint8 makes 255")),
        (np.float64([1.0, 0.5]), np.int64, (1, "0.5 (float64), which int64 makes 0")),
        (np.float64([1e300, 0]), np.float32, (0, "1e+300 (float64), which float32 makes inf")),
        (np.array([2]), np.bool_, (0, "2 (int64), which bool makes True")),
        (np.float64([np.nan, np.inf, -np.inf, 0.1]), np.float32, None),
        (np.int64([-128, 127]), np.int8, None),
        (np.float64([3.0, -4.0]), np.int8, None),
        (np.array([True]), np.float32, None),
    ],
)
def test_loss_of_cast_first_changed_number_is_named(values, dtype, lost):
    assert loss_of_cast(values, dtype) == lost


def test_loss_of_cast_nan_in_integers_is_lost():
    assert loss_of_cast(np.array([np.nan]), np.int64)[0] == 0


@pytest.mark.parametrize(
    ("values", "is_lost"),
    [
        ([5_000_000.5, 0, 1], False),  # exact
        ([5_000_000.25, 0, 1], True),  # an error of 0.25 in a range of 1,000
        ([5e6, 123_456_789.3, 1], False),  # no range
        ([5e6, 0, 1.0000000001], False),  # no width
        ([5e6, 1e39, 1], True),  # infinite
    ],
)
def test_loss_of_cast_floats_may_err_by_millionth_of_range(values, is_lost):
    lost = loss_of_cast(np.array([values]), np.float32, cast_tolerance(FAR))
    assert (lost is not None) == is_lost


def test_meaning_of_spaces_equal_where_numbers_mean_the_same():
    same = [
        (spaces.Discrete(4), spaces.Discrete(4, dtype=np.int32)),
        (spaces.Box(-1, 1, (2,), np.float32), spaces.Box(-1, 1, (2,), np.float64)),
        (spaces.Box(0.1, 0.7, (2,), np.float32), spaces.Box(0.1, 0.7, (2,), np.float64)),
        (spaces.Box(0, 255, (2,), np.uint8), spaces.Box(0, 255, (2,), np.float32)),
        (
            spaces.Dict({"a": spaces.Discrete(2), "b": spaces.MultiBinary(3)}),
            spaces.Dict({"b": spaces.MultiBinary(3), "a": spaces.Discrete(2)}, sort_keys=False),
        ),
    ]
    for left, right in same:
        assert meaning_of(left, bounds=True) == meaning_of(right, bounds=True)
    others = [
        spaces.Discrete(4),
        spaces.Discrete(4, start=2),
        spaces.Discrete(5),
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiDiscrete([3, 9]),
        spaces.MultiDiscrete([3, 4], start=[5, -2]),
        spaces.MultiBinary(2),
        spaces.MultiBinary(3),
        spaces.Box(-1, 1, (2,)),
        spaces.Box(np.float32([-1, 0]), np.float32([1, 1])),
        spaces.Box(0, 10, (2,)),
        spaces.Dict({"a": spaces.Discrete(4)}),
        spaces.Dict({"b": spaces.Discrete(4)}),
    ]
    assert len({meaning_of(each, bounds=True) for each in others}) == len(others)
    assert meaning_of(spaces.Box(-1, 1, (2,))) == meaning_of(spaces.Box(0, 10, (2,)))


def test_check_actions_fraction_in_integer_box_is_refused():
    space = spaces.Box(0, 10, (1,), np.int64)
    check_actions(space, np.array([[3.0], [10.0]]))
    with pytest.raises(ActionError, match=r"\[0\.7\] of row 1 lies outside .* round it"):
        check_actions(space, np.array([[3.0], [0.7]]))
