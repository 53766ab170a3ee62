"""The symmetry of ants as functions of tensors, for exported policies."""

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from coach_rl.environments.goal_worlds.ant import AntTurns
from coach_rl.extensions.exporting.decisions import Chosen, Place, View, symmetry_of
from coach_rl.extensions.exporting.policies import Tensors

_KEY = "observation"
_UPSIDE_DOWN = 1e-12
_LEGS = 4
_JOINTS = slice(7, 15), slice(21, 29)


class Complex(NamedTuple):
    """Complex numbers [R], which graphs don't have; vectors x + iy."""

    real: Tensor
    imag: Tensor

    def times(self, other: "Complex") -> "Complex":
        """The products [R]."""
        return Complex(
            self.real * other.real - self.imag * other.imag,
            self.real * other.imag + self.imag * other.real,
        )

    def conjugate(self) -> "Complex":
        """The conjugates [R]."""
        return Complex(self.real, -self.imag)


class Views(NamedTuple):
    """`AntTurns` of tensors: the turn and the mirror of each of R ants."""

    number: Tensor
    """[R] row of the tables of joints and motors."""
    mirrored: Tensor
    """[R] whether left and right are swapped."""
    front: Complex
    """[R] direction of the canonical front in the ant's own axes."""
    heading: Complex
    """[R] direction of the ant's own x axis in the world."""
    twist: Complex
    """[R] the unit quaternion of that turn, w + iz."""


def _way(turns: AntTurns, seen: Tensors) -> Complex:
    """`AntTurns.way` of tensors, and that of its subclass in the workshop."""
    key, first = turns.vectors[0]
    values = seen[key]
    if turns.due is None:
        return pair(values, first)
    chosen = first + 2 * values[:, turns.due].argmax(dim=1, keepdim=True)  # [R, 1]
    return Complex(values.gather(1, chosen)[:, 0], values.gather(1, chosen + 1)[:, 0])


def pair(values: Tensor, first: int) -> Complex:
    """Two neighbouring columns of [R, ...] as x + iy, [R]."""
    return Complex(values[:, first], values[:, first + 1])


def _views(turns: AntTurns, seen: Tensors) -> Views:
    twist = Complex(seen[_KEY][:, 3], seen[_KEY][:, 6])
    square = twist.real**2 + twist.imag**2
    is_upright = square > _UPSIDE_DOWN
    length = torch.sqrt(torch.where(is_upright, square, 1.0))
    twist = Complex(
        torch.where(is_upright, twist.real, 1.0) / length,
        torch.where(is_upright, twist.imag, 0.0) / length,
    )
    heading = twist.times(twist)
    way = _way(turns, seen).times(heading.conjugate())
    along_x = way.real.abs() >= way.imag.abs()
    ahead = torch.where(way.real >= 0, 0, 2)
    quarters = torch.where(along_x, ahead, torch.where(way.imag > 0, 1, 3))
    cosines = torch.tensor([1.0, 0.0, -1.0, 0.0], dtype=way.real.dtype)
    sines = torch.tensor([0.0, 1.0, 0.0, -1.0], dtype=way.real.dtype)
    front = Complex(cosines[quarters], sines[quarters])
    mirrored = way.times(front.conjugate()).imag < (0.0 if turns.params.mirrored else -torch.inf)
    return Views(quarters + _LEGS * mirrored, mirrored, front, heading, twist)


def _canonical(turns: AntTurns, seen: Tensors) -> Tensors:
    """`AntTurns.canonical` of tensors."""
    motion = seen[_KEY]
    views = _views(turns, seen)
    to_front = views.front.conjugate()
    sign = torch.where(views.mirrored, -1.0, 1.0).to(motion.dtype)
    from_world = views.heading.conjugate().times(to_front)
    tilt = pair(motion, 4).times(views.twist.conjugate()).times(to_front)
    rates = pair(motion, 18).times(to_front)
    columns = {key: [*seen[key].unbind(dim=1)] for key in dict([(_KEY, 0), *turns.vectors])}
    for key, first in ((_KEY, 15), *turns.vectors):
        vector = pair(seen[key], first).times(from_world)
        columns[key][first] = vector.real
        columns[key][first + 1] = sign * vector.imag
    own = columns[_KEY]
    fourth = views.heading.times(views.heading).times(views.heading).times(views.heading)
    own[3] = torch.sqrt(motion[:, 3] ** 2 + motion[:, 6] ** 2)
    own[4] = sign * tilt.real
    own[5] = tilt.imag
    own[6] = sign * fourth.imag if turns.params.shows_axes else torch.zeros_like(sign)
    own[18] = sign * rates.real
    own[19] = rates.imag
    own[20] = own[20] * sign
    joints = torch.from_numpy(turns.joints)[views.number]  # [R, 8]
    signs = torch.from_numpy(turns.joint_signs)[views.number]
    for part in _JOINTS:
        turned = motion[:, part].gather(1, joints) * signs
        own[part] = [*turned.unbind(dim=1)]
    dtypes = {key: seen[key].dtype for key in columns}
    made = {
        key: torch.stack([each.to(dtypes[key]) for each in values], dim=1)
        for key, values in columns.items()
    }
    return {**seen, **made}


def _restored(turns: AntTurns, action: Chosen, seen: Tensors) -> Tensor:
    """`AntTurns.restored` of tensors."""
    assert isinstance(action, Tensor)
    number = _views(turns, seen).number
    turned = action.gather(1, torch.from_numpy(turns.motors)[number])
    return (turned * torch.from_numpy(turns.motor_signs)[number]).to(action.dtype)


@symmetry_of.register
def _ant_symmetry(turns: AntTurns, _agent: Any, _place: Place) -> View:
    return View(partial(_canonical, turns), partial(_restored, turns))
