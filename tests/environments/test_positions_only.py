"""MuJoCo tasks whose velocities are hidden equal the full ones in everything else."""

import gymnasium
import numpy as np
import pytest

from coach_rl.environments import make
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.extensions.image_filters import ObservationCropFilter

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


@pytest.mark.parametrize("level", TASKS)
def test_positions_only_equals_qpos_of_gymnasium_and_its_cropped_observation(level):
    full_level, positions = TASKS[level]
    single = gymnasium.make(full_level)
    whole, _ = single.reset(seed=3)
    hidden = make(level, num_envs=1, threads=1).reset(seed=3).observation["observation"]
    np.testing.assert_array_equal(hidden[0], single.unwrapped.data.qpos[1:].astype(hidden.dtype))
    described = GymnasiumParameters(level=full_level).build(num_envs=1)
    crop = ObservationCropFilter(low=(0,), high=(positions,))
    stage = crop.build(described.spaces.observation["observation"])
    assert stage.output_space.shape == (positions,)
    shown = described.reset(seed=3).observation["observation"]
    np.testing.assert_array_equal(stage.apply(shown, {}, np.arange(1)), whole[None, :positions])
    single.close()
    described.close()
