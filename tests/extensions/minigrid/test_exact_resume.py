"""Restored levels continue exactly, in new processes too; see `benchmarks/minigrid_restores.py`."""

import pytest

from benchmarks import minigrid_restores


def test_restored_levels_continue_exactly_in_a_new_process():
    levels = ["DoorKey-8x8", "Dynamic-Obstacles-8x8", "BabyAI-BossLevel"]
    counts = minigrid_restores.continued(levels, restores=2, seed=3)
    assert counts == dict.fromkeys(levels, (2, 2))


@pytest.mark.slow
def test_twenty_restores_of_ten_levels_continue_exactly():
    counts = minigrid_restores.continued(minigrid_restores.LEVELS, restores=20, seed=0)
    assert counts == dict.fromkeys(minigrid_restores.LEVELS, (20, 20))
