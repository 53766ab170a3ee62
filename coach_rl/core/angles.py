"""Angles in radians: the short way around the circle, and the same angle within bounds."""

import numpy as np

from coach_rl.core.records import FloatArray


def wrapped(values: FloatArray, elements: tuple[int, ...]) -> FloatArray:
    """The values [..., G], these elements brought within half a turn of 0 in place."""
    if elements:
        turned = values[..., elements]
        values[..., elements] = turned - 2 * np.pi * np.round(turned / (2 * np.pi))
    return values


def turned_into(
    values: FloatArray, elements: tuple[int, ...], bounds: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Values [..., G] with these elements within half a turn of the middle of their bounds.

    Elements that are within the bounds [G], and the others, stay as they are to the bit.
    """
    if not elements:
        return values
    chosen = list(elements)
    low, high = (bound[chosen] for bound in bounds)
    angles = values[..., chosen]
    turns = np.round((angles - (low + high) / 2) / (2 * np.pi))
    is_within = (low <= angles) & (angles <= high)
    values = values.copy()
    values[..., chosen] = np.where(is_within, angles, angles - 2 * np.pi * turns)
    return values
