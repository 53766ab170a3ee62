"""The best return that any policy can have on Gymnasium's Pendulum-v1, by dynamic programming.

    python benchmarks/pendulum_optimum.py [--episodes 1000] [--seed 1] [--angles 301] [--speeds 201]

The costs to go of all 200 steps are worked out backwards on a grid of angles and speeds, between
whose points they are interpolated; then the policy that is greedy on them plays, on the exact
dynamics, from the starts that `coach --evaluate EPISODES --seed SEED -crd RUN` plays from. What it
reaches is reachable; that the grid expects the same says that there is hardly more.
"""

import argparse
from collections.abc import Iterator

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.envs.classic_control.pendulum import PendulumEnv

Floats = npt.NDArray[np.float64]

STEPS, MAX_SPEED, MAX_TORQUE = 200, 8.0, 2.0
ROWS = 16
"""Environments an evaluation of that many episodes has."""


def moved(angle: Floats, speed: Floats, torque: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Cost, next angle and next speed, as in Gymnasium's `PendulumEnv.step`."""
    cost = ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = speed + (15 * np.sin(angle) + 3 * torque) * 0.05
    speed = np.clip(speed, -MAX_SPEED, MAX_SPEED)
    return cost, angle + speed * 0.05, speed


class Grid:
    """Bilinear interpolation of values [angles * speeds]; angles wrap around."""

    def __init__(self, angles: int, speeds: int) -> None:
        self.angles, self.speeds = angles, speeds

    def points(self) -> Iterator[Floats]:
        """Every point's angle and speed."""
        angle = np.linspace(-np.pi, np.pi, self.angles, endpoint=False)
        speed = np.linspace(-MAX_SPEED, MAX_SPEED, self.speeds)
        return (part.ravel() for part in np.meshgrid(angle, speed, indexing="ij"))

    def corners(self, angle: Floats, speed: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
        """Indices and weights [4, ...] of the points around."""
        across = (angle + np.pi) % (2 * np.pi) / (2 * np.pi) * self.angles
        up = (speed + MAX_SPEED) / (2 * MAX_SPEED) * (self.speeds - 1)
        left, low = np.floor(across).astype(int), np.minimum(up.astype(int), self.speeds - 2)
        right, top = across - left, up - low
        here, next_one = (column % self.angles * self.speeds + low for column in (left, left + 1))
        indices = np.stack([here, here + 1, next_one, next_one + 1])
        weights = np.stack(
            [(1 - right) * (1 - top), (1 - right) * top, right * (1 - top), right * top]
        )
        return indices, weights


def costs_to_go(grid: Grid) -> list[Floats]:
    """Least cost of the last 0, 1, ..., 200 steps from every point of the grid."""
    angle, speed = grid.points()
    choices = []
    for torque in np.linspace(-MAX_TORQUE, MAX_TORQUE, 41):
        cost, *state = moved(angle, speed, torque)
        choices.append((cost, *grid.corners(*state)))
    costs = [np.zeros(grid.angles * grid.speeds)]
    for _ in range(STEPS):
        after = costs[-1]
        costs.append(np.min([cost + (after[at] * by).sum(0) for cost, at, by in choices], axis=0))
    return costs


def starts(episodes: int, seed: int) -> Floats:
    """Angles and speeds [2, episodes] that an evaluation starts from."""
    found = []
    for row in range(ROWS):
        environment = gymnasium.make("Pendulum-v1").unwrapped
        assert isinstance(environment, PendulumEnv)
        environment.reset(seed=seed + row)
        for _ in range(episodes // ROWS + (row < episodes % ROWS)):
            found.append(environment.state)
            environment.reset()
    return np.array(found).T


def main() -> None:
    """Work it out and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("episodes", 1000), ("seed", 1), ("angles", 301), ("speeds", 201)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    grid = Grid(asked.angles, asked.speeds)
    costs = costs_to_go(grid)
    angle, speed = starts(asked.episodes, asked.seed)
    torques = np.linspace(-MAX_TORQUE, MAX_TORQUE, 401)[:, None]
    at, by = grid.corners(angle, speed)
    expected, reached = (costs[STEPS][at] * by).sum(0), np.zeros(asked.episodes)
    for left in reversed(range(STEPS)):
        cost, *state = moved(angle, speed, torques)
        at, by = grid.corners(*state)
        best = torques[(cost + (costs[left][at] * by).sum(0)).argmin(0), 0]
        cost, angle, speed = moved(angle, speed, best)
        reached += cost
    print(f"reached {-reached.mean():.1f} (deviation of an episode {reached.std():.1f})")
    print(f"expected by the grid {-expected.mean():.1f}")


if __name__ == "__main__":
    main()
