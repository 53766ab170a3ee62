"""Landmarks that cover what was visited, and the cheapest ways between places."""

import numpy as np

from coach_rl.core.records import FloatArray, IntArray


def farthest_points(points: FloatArray, count: int) -> IntArray:
    """Indices of points that cover all: the first, then always the one farthest from those chosen.

    Fewer than `count` where there are not so many different points.

    Args:
        points: [M, G].
        count: Number of points to choose.
    """
    nearest = np.full(len(points), np.inf)  # squared distance to the nearest chosen one
    chosen: list[int] = []
    while len(chosen) < count and nearest.max(initial=0.0) > 0:
        chosen.append(int(nearest.argmax()))
        squares = ((points - points[chosen[-1]]) ** 2).sum(axis=1)
        nearest = np.minimum(nearest, squares)
    return np.array(chosen, np.int64)


def path_costs(edges: FloatArray) -> FloatArray:
    """The cost of the cheapest way from each place to each other, float64 [M, M], by scipy.

    Args:
        edges: Cost of the edge from each place to each other, 0 or more, [M, M]; inf: no edge.
    """
    from scipy.sparse.csgraph import csgraph_from_dense, shortest_path

    # A dense matrix would have no edges where they cost 0.
    return np.asarray(shortest_path(csgraph_from_dense(edges, null_value=np.inf), method="D"))


def costs_to(edges: FloatArray, last: FloatArray) -> FloatArray:
    """The cost of the cheapest way from each of M places to each of B targets, [M, B].

    Args:
        edges: As for `path_costs`, [M, M].
        last: Cost of the edge from each place to each target, [M, B].
    """
    ways = path_costs(edges)
    cheapest: FloatArray = (ways[:, :, None] + last[None]).min(axis=1)
    return cheapest
