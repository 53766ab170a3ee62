import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coach_rl.extensions.prioritised import prioritised
from coach_rl.extensions.prioritised.prioritised import SumTree, tree_bytes


def find_slowly(leaves, wanted):
    """Walk along the leaves until their sum passes the wanted one."""
    passed = 0.0
    for index, leaf in enumerate(leaves):
        passed += leaf
        if leaf > 0 and wanted < passed:
            return index
    return max(index for index, leaf in enumerate(leaves) if leaf > 0)


@pytest.fixture(params=[0, 2, 12], autouse=True)
def searched_depth(request, monkeypatch):
    """Trees that are descended level by level, searched at once, and both."""
    monkeypatch.setattr(prioritised, "SEARCHED_DEPTH", request.param)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    # multiples of 1/8: every sum is exact, so both ways must agree to the bit
    leaves=st.lists(st.integers(0, 40).map(lambda n: n / 8), min_size=1, max_size=20),
    share=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=10),
)
def test_sum_tree_find_equals_linear_search(leaves, share):
    tree = SumTree(len(leaves))
    tree.set(np.arange(len(leaves)), np.array(leaves))
    assert tree.total == sum(leaves)
    if not sum(leaves):
        return
    wanted = np.array(share) * tree.total
    expected = [find_slowly(leaves, each) for each in wanted]
    np.testing.assert_array_equal(tree.find(wanted), expected)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 30))
def test_sum_tree_set_in_any_order_equals_fill(seed, size):
    rng = np.random.default_rng(seed)
    tree, leaves = SumTree(size), np.zeros(size)
    for _ in range(10):
        index = rng.integers(size, size=rng.integers(1, 8))
        values = rng.random(len(index))
        tree.set(index, values)
        for place, value in zip(index, values, strict=True):
            leaves[place] = value  # the last of equal ones counts
    np.testing.assert_array_equal(tree[np.arange(size)], leaves)
    filled = SumTree(size)
    filled.set(np.arange(size), np.ones(size))
    filled.fill(np.arange(size), leaves)
    np.testing.assert_array_equal(filled.nodes, tree.nodes)


def test_sum_tree_zero_leaf_is_never_found():
    tree = SumTree(8)
    tree.set(np.array([1, 4]), np.array([0.1, 0.2]))
    ends = np.array([0.0, np.nextafter(0.1, 0), 0.1, tree.total, tree.total * (1 + 1e-12)])
    assert set(tree.find(ends).tolist()) == {1, 4}


@pytest.mark.parametrize(("size", "leaves"), [(1, 2), (2, 2), (3, 4), (1_000_000, 2**20)])
def test_tree_bytes_equals_size_of_tree(size, leaves):
    assert tree_bytes(size) == SumTree(size).nodes.nbytes == 16 * leaves
