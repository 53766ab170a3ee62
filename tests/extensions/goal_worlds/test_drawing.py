"""Goal worlds where nothing can be drawn."""

import sys

import pytest

from tests.environments.test_mujoco_batch import CHOICES, check_works_without_opengl


@pytest.mark.parametrize(("choice", "reason"), CHOICES)
@pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL has other values there")
def test_render_goal_world_without_opengl_error_tasks_work(tmp_path, choice, reason):
    check_works_without_opengl(tmp_path, choice, reason, "goal_pendulum")
