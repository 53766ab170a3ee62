"""The best return that any policy can have on Gymnasium's Pendulum-v1, by dynamic programming.

    python benchmarks/pendulum_optimum.py [--episodes 1000] [--seed 1]

The costs to go of all 200 steps are worked out backwards on a grid of angles and speeds, between
whose points they are interpolated; then the policy that is greedy on them plays in Gymnasium's own
environment, from the starts that `coach --evaluate EPISODES --seed SEED -crd RUN` plays from. What
it reaches is reachable; as the grid expects the same, hardly more is possible.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from coach_rl.core.seeding import integer_seed

Floats = npt.NDArray[np.float64]

STEPS, MAX_SPEED, MAX_TORQUE = 200, 8.0, 2.0
ANGLES, SPEEDS, TORQUES = 301, 201, 41
"""Points of the grid, and the torques tried at each."""
ROWS = 16
"""Environments that share the episodes of an evaluation."""


def moved(angle: Floats, speed: Floats, torque: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Cost, next angle and next speed, as in Gymnasium's `PendulumEnv.step`."""
    cost = ((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * torque**2
    speed = speed + (15 * np.sin(angle) + 3 * torque) * 0.05
    speed = np.clip(speed, -MAX_SPEED, MAX_SPEED)
    return cost, angle + speed * 0.05, speed


def grid_points() -> Iterator[Floats]:
    """Angles and speeds [ANGLES * SPEEDS] of the grid's points."""
    angle = np.linspace(-np.pi, np.pi, ANGLES, endpoint=False)
    speed = np.linspace(-MAX_SPEED, MAX_SPEED, SPEEDS)
    return (part.ravel() for part in np.meshgrid(angle, speed, indexing="ij"))


def corners(angle: Floats, speed: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """Indices and bilinear weights [4, ...] of the grid's points around; angles wrap around."""
    across = (angle + np.pi) % (2 * np.pi) / (2 * np.pi) * ANGLES
    up = (speed + MAX_SPEED) / (2 * MAX_SPEED) * (SPEEDS - 1)
    left, low = np.floor(across).astype(int), np.minimum(up.astype(int), SPEEDS - 2)
    right, top = across - left, up - low
    here, beside = (column % ANGLES * SPEEDS + low for column in (left, left + 1))
    indices = np.stack([here, here + 1, beside, beside + 1])
    weights = [(1 - right) * (1 - top), (1 - right) * top, right * (1 - top), right * top]
    return indices, np.stack(weights)


def interpolated(values: Floats, angle: Floats, speed: Floats) -> Floats:
    """Values [ANGLES * SPEEDS] of the grid, between its points."""
    indices, weights = corners(angle, speed)
    return np.asarray((values[indices] * weights).sum(0))


def costs_to_go() -> list[Floats]:
    """Least cost of the last 0, 1, ..., 200 steps from every point of the grid."""
    angle, speed = grid_points()
    choices = []
    for torque in np.linspace(-MAX_TORQUE, MAX_TORQUE, TORQUES):
        cost, *state = moved(angle, speed, torque)
        choices.append((cost, *corners(*state)))
    costs = [np.zeros(ANGLES * SPEEDS)]
    for _ in range(STEPS):
        after = costs[-1]
        costs.append(np.min([cost + (after[at] * by).sum(0) for cost, at, by in choices], axis=0))
    return costs


def started(episodes: int, seed: int) -> list[PendulumEnv]:
    """An environment for each episode of an evaluation, at its start."""
    found = []
    first = integer_seed(seed, "final evaluation")
    for row in range(ROWS):
        source = PendulumEnv()
        source.reset(seed=first + row)
        for _ in range(episodes // ROWS + (row < episodes % ROWS)):
            found.append(PendulumEnv())
            found[-1].state = source.state
            found[-1].last_u = None
            source.reset()
    return found


def main() -> None:
    """Work it out and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.episodes < 1:
        parser.error(f"--episodes must be 1 or more, got {given.episodes}")
    costs, environments = costs_to_go(), started(given.episodes, given.seed)
    torques = np.linspace(-MAX_TORQUE, MAX_TORQUE, 401)[:, None]
    expected = -interpolated(costs[STEPS], *np.array([each.state for each in environments]).T)
    reached = np.zeros(given.episodes)
    for left in reversed(range(STEPS)):
        cost, *state = moved(*np.array([each.state for each in environments]).T, torques)
        best = torques[(cost + interpolated(costs[left], *state)).argmin(0)]
        reached += [each.step(torque)[1] for each, torque in zip(environments, best, strict=True)]
    print(f"reached {reached.mean():.1f} (deviation of an episode {reached.std():.1f})")
    print(f"expected by the grid {expected.mean():.1f}")


if __name__ == "__main__":
    main()
