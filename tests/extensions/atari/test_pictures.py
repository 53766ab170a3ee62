"""Pictures are means over areas, within a level of those that Gymnasium makes with opencv."""

import numpy as np
import pytest

from coach_rl.environments.atari import game as module
from coach_rl.environments.atari.pictures import AreaMean
from tests.extensions.atari.games_for_tests import game
from tests.extensions.atari.gymnasium_pictures import GAMES, STEPS, actions, recorded


def slow_mean(picture, size):
    """The mean over areas, pixel by pixel in float64."""
    height, width = picture.shape
    small = np.zeros((size, size))
    for row in range(size):
        for column in range(size):
            top, bottom = row * height / size, (row + 1) * height / size
            left, right = column * width / size, (column + 1) * width / size
            total = 0.0
            for y in range(int(top), int(np.ceil(bottom))):
                for x in range(int(left), int(np.ceil(right))):
                    tall = min(bottom, y + 1) - max(top, y)
                    wide = min(right, x + 1) - max(left, x)
                    total += tall * wide * picture[y, x]
            small[row, column] = total / ((bottom - top) * (right - left))
    return small


@pytest.mark.parametrize(("height", "width", "size"), [(210, 160, 84), (250, 160, 84), (7, 5, 3)])
def test_area_mean_equals_the_mean_pixel_by_pixel(height, width, size):
    picture = np.random.default_rng(0).integers(256, size=(height, width), dtype=np.uint8)
    mine = AreaMean(height, width, size)(picture)
    assert mine.dtype == np.uint8
    assert np.abs(mine - slow_mean(picture, size)).max() <= 0.5001  # a rounding


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", GAMES)
def test_pictures_are_within_a_level_of_those_of_gymnasium(name, monkeypatch):
    monkeypatch.setattr(module, "STICKINESS", 0.0)
    playing, theirs = game(name), recorded()[name]
    chosen = actions(playing.action_space.n)
    picture, _ = playing.reset(seed=0)
    assert len(theirs) == STEPS
    for expected in theirs:
        assert np.abs(picture.astype(int) - expected).max() <= 1
        picture, _, terminated, _, _ = playing.step(np.int64(next(chosen)))
        if terminated:  # whose last picture Gymnasium makes of earlier frames
            picture, _ = playing.reset()
