"""Resized images as a graph: bytes are the same, floats to rounding."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.configuration.extensions import import_offers
from coach_rl.extensions.exporting.torch_filters import torch_filter

SHAPES = (
    ((48, 37), (84, 84)),
    ((210, 160, 3), (84, 84)),
    ((9, 50, 4), (9, 7)),
    ((5, 1, 1), (2, 3)),
)
"""Of images, and their new height and width."""


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "size"), SHAPES)
def test_resized_images_are_those_of_the_filter(shape, size, dtype):
    import_offers("exporting")
    is_bytes = dtype == np.uint8
    box = spaces.Box(0, 255 if is_bytes else 1, shape, dtype)
    params = rl.ObservationRescaleToSizeFilter(height=size[0], width=size[1])
    stage = params.build(box)
    drawn = np.random.default_rng(3).random((12, *shape)) * (256 if is_bytes else 1)
    images = np.floor(drawn).astype(dtype) if is_bytes else drawn.astype(dtype)

    expected = stage.apply(images, stage.new_rows(12), np.arange(12))
    made = torch_filter(params, stage)(torch.from_numpy(images)).numpy()
    assert made.dtype == expected.dtype
    if is_bytes:
        np.testing.assert_array_equal(made, expected)
    else:
        np.testing.assert_allclose(made, expected, rtol=0, atol=1e-5)


def test_factor_resizes_as_a_size_does():
    import_offers("exporting")
    images = np.random.default_rng(4).integers(0, 256, (3, 20, 31, 3), dtype=np.uint8)
    params = rl.ObservationRescaleSizeByFactorFilter(factor=0.5)
    stage = params.build(spaces.Box(0, 255, (20, 31, 3), np.uint8))
    made = torch_filter(params, stage)(torch.from_numpy(images)).numpy()
    np.testing.assert_array_equal(made, stage.apply(images, stage.new_rows(3), np.arange(3)))


def test_clipped_bytes_stay_bytes():
    import_offers("exporting")
    images = np.random.default_rng(4).integers(0, 256, (3, 20, 31), dtype=np.uint8)
    params = rl.ObservationClippingFilter(low=20.0, high=230.0)
    stage = params.build(spaces.Box(0, 255, (20, 31), np.uint8))
    made = torch_filter(params, stage)(torch.from_numpy(images)).numpy()
    expected = stage.apply(images, stage.new_rows(3), np.arange(3))
    assert made.dtype == expected.dtype == np.uint8
    np.testing.assert_array_equal(made, expected)
