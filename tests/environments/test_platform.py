"""The Platform domain against a plain version of its rules, one player and one number at a time."""

import numpy as np
import pytest

from coach_rl.environments.toy.platform import LARGEST, MOST_TICKS, Platform

PLATFORMS = [(0.0, 250.0), (475.0, 275.0), (985.0, 50.0)]
"""Left end and width."""


def normals(uniform):
    """The numbers that the rules make of a row of uniform ones."""
    radius = np.sqrt(-2 * np.log(1 - uniform[::2]))
    angle = 2 * np.pi * uniform[1::2]
    return [*(radius * np.cos(angle)), *(radius * np.sin(angle))]


class PlainPlatform:
    """After Masson et al. 2016, with the constants of gym-platform."""

    def __init__(self, x=0.0):
        self.x, self.y, self.dx, self.dy = x, 40.0, 0.0, 0.0
        self.enemies = [[230.0, -30.0], [730.0, -30.0]]
        """Place and speed."""

    def stands(self):
        return self.y == 40.0 and any(
            left - 20 <= self.x <= left + width for left, width in PLATFORMS
        )

    def act(self, kind, argument, noise):
        """Reward and whether the episode ends."""
        begin, jump = self.x, noise[:2]
        for tick in range(MOST_TICKS):
            slowed, pushed = noise[2 + 2 * tick : 4 + 2 * tick]
            self.tick(kind, argument, abs(slowed), pushed, jump)
            if self.x >= 1035.0:
                return (1035.0 - begin) / 1035.0, True
            if self.y < 40.0 or self.touches():
                return (self.x - begin) / 1035.0, True
            if tick == 19 if kind == 0 else self.stands():
                return (self.x - begin) / 1035.0, False
        raise AssertionError("the jump never ends")

    def touches(self):
        return any(
            abs(self.x - place) < 20 and abs(self.y - 40.0) < 30 for place, _ in self.enemies
        )

    def tick(self, kind, argument, slowed, pushed, jump):
        stands, dt = self.stands(), 0.05
        if not stands:
            self.dy -= 9.8 * dt
        elif kind == 0:
            self.dx += min(argument, 30.0)
        else:
            rise = (None, 35.0, 25.0)[kind]
            gain = argument / (2 * rise / 9.8 + 1) - self.dx
            self.dx += max(-30.0, min(30.0, gain - abs(jump[0])))
            self.dy += rise - abs(jump[1])
        self.dx = min(max(self.dx - slowed * 0.5 * dt, 0.0), 70.0 if stands else 100.0)
        enemy = self.enemies[int(self.x > 475.0)]
        left, width = PLATFORMS[int(self.x > 475.0)]
        self.x = min(max(self.x + self.dx * dt, 0.0), 1035.0)
        self.y += self.dy * dt
        self.dx *= 0.99
        if not left < enemy[0] < left + width - 20:
            enemy[1] = -enemy[1]
        enemy[1] = min(max(enemy[1] + pushed * 0.5 * dt, -30.0), 30.0)
        enemy[0] = min(max(enemy[0] + enemy[1] * dt, left), left + width - 20)
        for left, width in PLATFORMS:
            if left - 20 < self.x < left + width and self.y < 40.0:
                self.push_out(left, width)

    def push_out(self, left, width):
        side = self.x
        if self.x < left:
            side = left - 20
        elif self.x > left + width - 20:
            side = left + width
        if side != self.x and abs(self.x - side) < abs(self.y - 40.0):
            self.x = side
        else:
            self.y, self.dy = 40.0, 0.0
        self.dx = 0.0

    def seen(self):
        """The nine features, unscaled."""
        place, speed = self.enemies[int(self.x > 475.0)]
        features = {
            0: (250.0, 275.0, 225.0, 0.0),
            1: (275.0, 50.0, 235.0, 475.0),
            2: (50.0, 0.0, 0.0, 985.0),
        }
        which = int(self.x >= 475.0) + int(self.x >= 985.0)
        return [self.x, self.dx, place, speed, *features[which], 0.0]


def test_platform_equals_plain_rules():
    """Episodes of actions that often succeed, and some that don't."""
    world, rng, rows = Platform(), np.random.default_rng(0), 40
    state = world.start(np.zeros((rows, 0)))
    state["place"][:, 0] = np.resize([0.0, 100.0, 600.0, 990.0], rows)
    plain = [PlainPlatform(x) for x in state["place"][:, 0]]
    ends, successes = 0, 0
    for _ in range(30):
        kind = rng.choice(3, rows, p=[0.5, 0.2, 0.3])
        arguments = {
            name: (rng.uniform(0.3, 1.0, (rows, 1)) * high).astype(np.float32)
            for name, high in LARGEST.items()
        }
        uniform = rng.random((rows, world.step_numbers))
        step = world.step(state, {"kind": kind, **arguments}, uniform)
        seen = world.observe(step.state)["observation"]
        for row, single in enumerate(plain):
            argument = float(arguments[list(LARGEST)[kind[row]]][row, 0])
            reward, ended = single.act(int(kind[row]), argument, normals(uniform[row]))
            assert step.reward[row] == pytest.approx(reward, abs=1e-9)
            assert step.terminated[row] == ended
            assert step.info["is_success"][row] == (single.x >= 1035.0)
            scale = np.array([1055, 100, 1035, 60, 275, 275, 235, 1035, 1])
            shift = np.array([20, 0, 0, 30, 0, 0, 0, 0, 0])
            expected = (np.array(single.seen()) + shift) / scale
            np.testing.assert_allclose(seen[row], expected, rtol=1e-6, atol=1e-6)
            if ended:
                ends, successes = ends + 1, successes + (single.x >= 1035.0)
                plain[row] = PlainPlatform()
        again = world.start(np.zeros((rows, 0)))
        state = {
            name: np.where(
                step.terminated.reshape(-1, *[1] * (values.ndim - 1)), again[name], values
            )
            for name, values in step.state.items()
        }
    assert ends > 150
    assert successes


def test_platform_highest_jump_lands_within_the_ticks():
    height, rise, ticks = 40.0, 35.0, 0
    while height >= 40.0:
        height, rise, ticks = height + rise * 0.05, rise - 9.8 * 0.05, ticks + 1
    assert ticks < MOST_TICKS
