"""Numbers worked out by hand, one block per filter; shared promises: test_filter_contract."""

import numpy as np
import pytest
from gymnasium import spaces
from PIL import Image

import coach_rl as rl


class Filtered:
    """One filter on one key, with a memory of its own."""

    def __init__(self, parameters, space, num_rows=8):
        self.chain = rl.InputFilter(observation={"x": (parameters,)}).build(
            spaces.Dict({"x": space})
        )
        self.memory = self.chain.new_rows(num_rows)

    @property
    def space(self):
        return self.chain.observation_space["x"]

    def __call__(self, values, *, rows=None, starts=None, learn=True):
        count = len(values)
        return self.chain.observation(
            self.memory,
            np.arange(count) if rows is None else np.array(rows),
            {"x": np.asarray(values)},
            starts=np.zeros(count, bool) if starts is None else np.array(starts),
            learn=learn,
        )["x"]


def vector(size, low=-np.inf, high=np.inf, dtype=np.float64):
    return spaces.Box(low, high, (size,), dtype)


def image(*shape):
    return spaces.Box(0, 255, shape, np.uint8)


def noise_image(*shape):
    return np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)


def test_clipping_takes_0_for_a_bound():
    clip = Filtered(rl.ObservationClippingFilter(low=0), vector(3, -2, 2))
    np.testing.assert_array_equal(clip([[-1.0, 0.5, 9.0]]), [[0.0, 0.5, 9.0]])
    assert (clip.space.low == 0).all()
    assert (clip.space.high == 2).all()
    clip = Filtered(rl.ObservationClippingFilter(high=0), vector(3))
    np.testing.assert_array_equal(clip([[-1.0, 0.5, 9.0]]), [[-1.0, 0.0, 0.0]])


def test_clipping_keeps_whole_numbers_whole():
    clip = Filtered(rl.ObservationClippingFilter(low=-10, high=100), image(2))
    output = clip(np.array([[3, 200]], np.uint8))
    np.testing.assert_array_equal(output, [[3, 100]])
    assert output.dtype == np.uint8


def test_crop_keeps_a_box_of_elements():
    crop = Filtered(rl.ObservationCropFilter(low=(1, 0), high=(3, 2)), image(4, 5))
    values = np.arange(20, dtype=np.uint8).reshape(1, 4, 5)
    np.testing.assert_array_equal(crop(values), [[[5, 6], [10, 11]]])
    assert crop.space.shape == (2, 2)


def test_crop_up_to_the_end():
    crop = Filtered(rl.ObservationCropFilter(low=(2,), high=(None,)), vector(4))
    np.testing.assert_array_equal(crop([[1.0, 2.0, 3.0, 4.0]]), [[3.0, 4.0]])


def test_normalization_by_hand():
    normalize = Filtered(rl.ObservationNormalizationFilter(), vector(1))
    # 1, 3: mean 2, deviation 1
    np.testing.assert_allclose(normalize([[1.0], [3.0]]), [[-1.0], [1.0]], rtol=1e-6)
    # 1, 3, 5: mean 3, variance 8/3; each observation counts before it is normalised
    np.testing.assert_allclose(normalize([[5.0]]), [[2 / np.sqrt(8 / 3)]], rtol=1e-6)
    np.testing.assert_allclose(normalize([[4.0]], learn=False), [[1 / np.sqrt(8 / 3)]], rtol=1e-6)
    assert normalize([[4.0]], learn=False).dtype == np.float32
    np.testing.assert_array_equal(normalize([[1e9], [-1e9]], learn=False), [[5.0], [-5.0]])


def test_normalization_before_anything_was_learned_only_clips():
    normalize = Filtered(rl.ObservationNormalizationFilter(clip=2.0), vector(3))
    np.testing.assert_allclose(
        normalize([[0.5, -1.0, 7.0]], learn=False), [[0.5, -1.0, 2.0]], rtol=1e-6
    )


def test_normalization_leaves_an_element_that_never_changes_at_0():
    normalize = Filtered(rl.ObservationNormalizationFilter(), vector(1))
    for _ in range(3):
        output = normalize([[0.1]] * 3)
    np.testing.assert_allclose(output, 0.0, atol=1e-6)


def test_reduction_keeps_or_discards_by_name():
    names = ("position", "position", "fuel", "health")
    given = [[1.0, 2.0, 3.0, 4.0]]
    for sub_parts, method, expected in (
        (("position",), "keep", [[1.0, 2.0]]),
        (("health", "position"), "keep", [[1.0, 2.0, 4.0]]),  # the order of the vector stays
        (("position",), "discard", [[3.0, 4.0]]),
    ):
        reduce = Filtered(
            rl.ObservationReductionBySubPartsNameFilter(
                names=names, sub_parts=sub_parts, method=method
            ),
            vector(4),
        )
        np.testing.assert_array_equal(reduce(given), expected)


def test_reduction_maps_the_bounds_of_what_it_keeps():
    space = spaces.Box(np.array([0.0, -1.0]), np.array([5.0, 1.0]), dtype=np.float64)
    reduce = Filtered(
        rl.ObservationReductionBySubPartsNameFilter(names=("a", "b"), sub_parts=("b",)), space
    )
    assert reduce.space == spaces.Box(-1.0, 1.0, (1,), np.float64)


@pytest.mark.parametrize("size", [(84, 84), (30, 100), (250, 200)])
def test_rescaling_bytes_agrees_with_pillow(size):
    height, width = size
    for values in (noise_image(3, 105, 80), noise_image(3, 105, 80, 3)):
        rescale = Filtered(
            rl.ObservationRescaleToSizeFilter(height=height, width=width), image(*values.shape[1:])
        )
        output = rescale(values).astype(int)
        for row, frame in zip(output, values, strict=True):
            pillow = Image.fromarray(frame).resize((width, height), Image.Resampling.BILINEAR)
            assert np.abs(row - np.asarray(pillow).astype(int)).max() <= 1


def test_rescaling_floats_agrees_with_pillow():
    values = np.random.default_rng(0).random((2, 40, 30)).astype(np.float32)
    rescale = Filtered(
        rl.ObservationRescaleToSizeFilter(height=17, width=19),
        spaces.Box(0.0, 1.0, (40, 30), np.float32),
    )
    for row, frame in zip(rescale(values), values, strict=True):
        pillow = Image.fromarray(frame).resize((19, 17), Image.Resampling.BILINEAR)
        np.testing.assert_allclose(row, np.asarray(pillow), atol=1e-5)


def test_rescaling_by_factor_by_hand():
    halve = Filtered(rl.ObservationRescaleSizeByFactorFilter(factor=0.5), image(4, 6, 3))
    assert halve.space.shape == (2, 3, 3)
    np.testing.assert_array_equal(
        halve(np.full((2, 4, 6, 3), 77, np.uint8)), np.full((2, 2, 3, 3), 77)
    )


def test_grey_equals_pillow_exactly():
    values = noise_image(2, 64, 64, 3)
    values[0, 0, :2] = [[255, 255, 255], [0, 0, 0]]
    grey = Filtered(rl.ObservationRGBToYFilter(), image(64, 64, 3))
    output = grey(values)
    for row, frame in zip(output, values, strict=True):
        np.testing.assert_array_equal(row, np.asarray(Image.fromarray(frame).convert("L")))
    assert output[0, 0, 0] == 255


def test_grey_of_floats_by_hand():
    grey = Filtered(rl.ObservationRGBToYFilter(), spaces.Box(0.0, 1.0, (1, 3, 3), np.float32))
    primaries = np.eye(3, dtype=np.float32).reshape(1, 1, 3, 3)
    np.testing.assert_allclose(grey(primaries), [[[0.299, 0.587, 0.114]]], rtol=1e-6)


def test_stacking_by_hand_rows_out_of_phase():
    stack = Filtered(rl.ObservationStackingFilter(stack_size=3), vector(1), num_rows=3)
    first = stack([[1.0], [10.0]], rows=[0, 2], starts=[True, True])
    np.testing.assert_array_equal(first, [[[1, 1, 1]], [[10, 10, 10]]])  # filled with the first
    np.testing.assert_array_equal(stack([[2.0]], rows=[0]), [[[1, 1, 2]]])
    # row 2 knows nothing of row 0's second step, and row 0 starts anew while row 2 goes on
    second = stack([[20.0], [5.0]], rows=[2, 0], starts=[False, True])
    np.testing.assert_array_equal(second, [[[10, 10, 20]], [[5, 5, 5]]])
    third = stack([[6.0], [30.0]], rows=[0, 2])
    np.testing.assert_array_equal(third, [[[5, 5, 6]], [[10, 20, 30]]])


def test_stacking_of_differences_by_hand_newest_minus_each_older_one():
    stack = Filtered(rl.ObservationStackingFilter(stack_size=3, differences=True), vector(1, -2, 5))
    np.testing.assert_array_equal(stack.space.low, [[-7, -7, -2]])
    np.testing.assert_array_equal(stack.space.high, [[7, 7, 5]])
    np.testing.assert_array_equal(stack([[1.0]], starts=[True]), [[[0, 0, 1]]])
    np.testing.assert_array_equal(stack([[4.0]]), [[[3, 3, 4]]])
    np.testing.assert_array_equal(stack([[2.0]]), [[[1, -2, 2]]])
    np.testing.assert_array_equal(stack([[5.0]], starts=[True]), [[[0, 0, 5]]])


def test_stacking_of_differences_without_bounds_has_none():
    space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    filtered = rl.ObservationStackingFilter(stack_size=2, differences=True).build(space)
    assert not filtered.output_space.is_bounded("both")


def test_stacking_continues_in_test():
    stack = Filtered(rl.ObservationStackingFilter(stack_size=2), vector(1))
    stack([[1.0]], starts=[True], learn=False)
    np.testing.assert_array_equal(stack([[2.0]], learn=False), [[[1, 2]]])


def test_stacking_on_an_axis_of_choice():
    values = noise_image(2, 4, 5)
    for axis, shape in ((-1, (4, 5, 3)), (0, (3, 4, 5)), (1, (4, 3, 5))):
        stack = Filtered(rl.ObservationStackingFilter(stack_size=3, axis=axis), image(4, 5))
        assert stack.space.shape == shape
        output = stack(values, starts=[True, True])
        np.testing.assert_array_equal(output, np.stack([values] * 3, axis % 3 + 1))


def test_bytes_by_hand():
    to_bytes = Filtered(rl.ObservationToUInt8Filter(low=-1.0, high=1.0), vector(5, -1, 1))
    # 0 lies at level 127.5, halfway: rounded to the even 128
    output = to_bytes([[-1.0, 1.0, 0.0, 7.0, -0.999]])
    np.testing.assert_array_equal(output, [[0, 255, 128, 255, 0]])
    assert output.dtype == np.uint8
    assert to_bytes.space == spaces.Box(0, 255, (5,), np.uint8)


def test_bytes_of_bytes_do_not_wrap_around():
    to_bytes = Filtered(rl.ObservationToUInt8Filter(low=10, high=20), image(3))
    np.testing.assert_array_equal(to_bytes(np.array([[0, 15, 255]], np.uint8)), [[0, 128, 255]])
