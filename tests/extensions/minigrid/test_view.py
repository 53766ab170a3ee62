"""Symbols and pictures of views equal MiniGrid's own, step by step."""

import numpy as np
import pytest

from coach_rl.environments.minigrid.levels import IDS
from coach_rl.environments.minigrid.symbols import ONE_HOT
from coach_rl.environments.minigrid.world import TILE
from tests.extensions.minigrid.levels_for_tests import SAMPLE, in_step

FIRST = {"agent_view_size": 5}
WIDE = {"agent_view_size": 9, "see_through_walls": True}


def planes(image):
    """One-hot object, colour and state of MiniGrid's numbers [V, V, 3]."""
    parts = [np.eye(size)[image[..., place]] for place, size in enumerate((11, 6, 3))]
    return np.concatenate(parts, axis=-1)


def assert_same_steps(level, steps, **options):
    for mine, theirs, _, _ in in_step(level, steps, **options):
        np.testing.assert_array_equal(mine[0]["view"], planes(theirs[0]["image"]))
        assert mine[0]["direction"] == theirs[0]["direction"]
        assert mine[1:3] == theirs[1:3]
        assert mine[3] == (theirs[3] and not theirs[2])


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("level", SAMPLE)
def test_view_and_rewards_equal_those_of_minigrid(level):
    assert_same_steps(level, 300)


@pytest.mark.parametrize("kwargs", [FIRST, WIDE])
def test_view_of_another_size_equals_that_of_minigrid(kwargs):
    assert_same_steps("MiniGrid-MultiRoom-N6-v0", 200, kwargs=kwargs)


@pytest.mark.slow
@pytest.mark.parametrize("level", IDS)
def test_every_level_equals_that_of_minigrid(level):
    for seed in range(2):
        assert_same_steps(level, 100, seed=seed)


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("level", SAMPLE)
def test_picture_equals_that_of_minigrid(level):
    carried = set()
    for mine, _, ours, theirs in in_step(level, 120, seed=2, shows="picture"):
        if level != "BabyAI-PutNextS5N2Carrying-v0" or theirs.step_count:  # see the next test
            expected = theirs.get_frame(tile_size=TILE, agent_pov=True)
            np.testing.assert_array_equal(mine[0]["picture"], expected)
            assert mine[0]["picture"].dtype == np.uint8
        carried.add(ours.unwrapped.carrying is None)
    assert carried


def test_first_view_of_a_carrying_level_is_that_before_the_object_is_taken():
    mine, theirs, ours, _ = next(in_step("BabyAI-PutNextS5N2Carrying-v0", 0))
    assert ours.unwrapped.carrying is not None
    np.testing.assert_array_equal(mine[0]["view"], planes(theirs[0]["image"]))


def test_each_symbol_has_three_planes_of_its_own():
    assert ONE_HOT.shape == (198, 20)
    assert (ONE_HOT.sum(axis=1) == 3).all()
    assert len(np.unique(ONE_HOT, axis=0)) == 198
