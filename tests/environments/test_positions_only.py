"""MuJoCo tasks whose velocities are hidden equal the full ones in everything else."""

import numpy as np
import pytest

from coach_rl.environments import make

TASKS = {
    "half_cheetah_p": ("HalfCheetah-v5", 8),
    "hopper_p": ("Hopper-v5", 5),
    "walker2d_p": ("Walker2d-v5", 8),
}
"""The full task and its number of positions but for that along the track."""


@pytest.mark.parametrize("level", TASKS)
def test_positions_only_equals_the_full_task_without_velocities(level):
    full_level, positions = TASKS[level]
    hidden, full = (make(name, num_envs=2, threads=1) for name in (level, full_level))
    assert hidden.spaces.observation["observation"].shape == (positions,)
    one, other = hidden.reset(seed=0), full.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        for key in ("observation", "first_observation"):
            seen, whole = (getattr(answer, key)["observation"] for answer in (one, other))
            np.testing.assert_array_equal(seen, whole[:, :positions])
        action = rng.uniform(-1, 1, (2, *hidden.spaces.action.shape)).astype(np.float32)
        for environment in (hidden, full):
            environment.send(action)
        one, other = hidden.recv(), full.recv()
        np.testing.assert_array_equal(one.reward, other.reward)
        np.testing.assert_array_equal(one.end, other.end)
