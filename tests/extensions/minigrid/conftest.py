"""Tests of MiniGrid are skipped where it is missing."""

import pytest

pytest.importorskip(
    "minigrid", reason="minigrid is not installed; it comes with the extra minigrid"
)
