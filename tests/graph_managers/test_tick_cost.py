"""Bytecodes of a tick, which are the same on every machine: of chains, and of members in turn."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from coach_rl.core.clock import Phase

BEFORE_GRAPHS = {1: 1_115, 2: 2_811, 3: 3_519, 4: 3_932}
"""Bytecodes of Python 3.11 in a tick of so many levels, before levels could form a graph."""


@pytest.fixture(scope="module")
def cost():
    """The benchmark that counts."""
    folder = str(Path(__file__).resolve().parents[2] / "benchmarks")
    sys.path.insert(0, folder)
    try:
        yield import_module("arbiter_cost")
    finally:
        sys.path.remove(folder)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="bytecodes of Python 3.11")
@pytest.mark.parametrize("levels", BEFORE_GRAPHS)
def test_tick_of_a_chain_costs_no_more_than_before_graphs(levels, cost):
    agents = [cost.Nothing() for _ in range(levels)]
    chain = cost.stack(*agents, num_envs=8, phase=Phase.TRAIN)
    assert cost.tick_bytecodes(chain) <= BEFORE_GRAPHS[levels]
