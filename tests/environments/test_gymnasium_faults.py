"""When an environment fails or its process dies: one line, no hang, nothing left behind."""

import multiprocessing

import numpy as np
import psutil
import pytest

import coach_rl as rl
from coach_rl.core.errors import SpaceError

ROWS = 4
STOPS = rl.FaultParameters(on_crash="stop")


def build(level, vectorization="subprocess", **options):
    return rl.GymnasiumParameters(
        level=f"little_environments:{level}",
        vectorization=vectorization,
        processes=2,
        start_method="fork",
        faults=STOPS,
        **options,
    ).build(num_envs=ROWS)


def test_close_leaves_no_process():
    environment = build("Plain")
    environment.reset(seed=0)
    workers = [psutil.Process(child.pid) for child in multiprocessing.active_children()]
    assert len(workers) == 2
    environment.send(np.zeros(ROWS, np.int64))  # close in the midst of a step
    environment.close()
    environment.close()
    assert not multiprocessing.active_children()
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.parametrize(
    ("level", "kind", "line"),
    [
        ("HasGraph", SpaceError, "has a Text space"),
        ("needs_a_package", rl.ConfigurationError, "pip install swim"),
        ("Nothing", rl.UnknownNameError, "unknown environment"),
    ],
)
def test_build_error_in_worker(level, kind, line):
    with pytest.raises(kind):
        build(level)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("reward", [2, True, np.float32(2), np.array(2.0)])
def test_reward_of_any_number_type(reward):
    environment = build("Answers", "sync", kwargs={"reward": reward, "success": np.True_})
    environment.reset(seed=0)
    environment.send(np.zeros(ROWS, np.int64))
    answer = environment.recv()
    assert answer.reward.tolist() == [float(reward)] * ROWS
    assert answer.info["is_success"].tolist() == [True] * ROWS
