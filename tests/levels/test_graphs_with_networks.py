"""Graphs of levels with networks and all arbiters equal a recursion over single rows."""

import pytest
from network_play import Run


@pytest.mark.parametrize("seed", range(6))
def test_random_graph_with_networks_equals_a_recursion_row_by_row(seed):
    run = Run(seed)
    run.advance(100)
    run.check()
