"""When an environment fails or its process dies: one line, no hang, nothing left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from coach_rl.configuration.user_modules import load_module
from coach_rl.core.errors import (
    ActionError,
    ConfigurationError,
    EnvironmentFault,
    SpaceError,
    UnknownNameError,
)
from coach_rl.environments.faults import FaultParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from tests.waiting import PATIENCE

ROWS = 4
STOPS = FaultParameters(on_crash="stop")


def build(level, vectorization="subprocess", **options):
    return GymnasiumParameters(
        level=f"little_environments:{level}",
        vectorization=vectorization,
        processes=2,
        start_method="fork",
        faults=STOPS,
        **options,
    ).build(num_envs=ROWS)


def play(environment, action, steps):
    for _ in range(steps):
        environment.send(np.full(ROWS, action))
        environment.recv()


def run_into_trouble(environment, row):
    """Step until the row's third step, at which its action 3 makes trouble."""
    environment.reset(seed=0)
    for step in range(3):
        action = np.zeros(ROWS, np.int64)
        action[row] = 3 if step == 2 else 0
        environment.send(action)
        environment.recv()


@pytest.mark.parametrize("vectorization", ["sync", "subprocess"])
def test_failed_row_error_names_it_and_reset_works(vectorization):
    environment = build("Plain", vectorization)
    with pytest.raises(
        EnvironmentFault,
    ) as caught:
        run_into_trouble(environment, row=2)
    chain = caught.value.__cause__
    assert isinstance(chain, ZeroDivisionError) or "in trouble" in str(chain)
    with pytest.raises(ActionError):
        environment.send(np.zeros(ROWS, np.int64))
    response = environment.reset(seed=0)
    assert response.rows.tolist() == [0, 1, 2, 3]
    environment.send(np.zeros(ROWS, np.int64))
    np.testing.assert_array_equal(environment.recv().observation["observation"][:, 0], [1] * ROWS)
    environment.close()


def test_dead_worker_is_an_error():
    environment = build("Dies")
    with pytest.raises(EnvironmentFault):
        run_into_trouble(environment, row=3)
    assert len(environment.reset(seed=0)) == ROWS  # in a new one
    environment.close()


def test_killed_idle_worker_is_an_error():
    environment = build("Plain")
    environment.reset(seed=0)
    before = [child.pid for child in multiprocessing.active_children()]
    os.kill(before[-1], signal.SIGKILL)
    with pytest.raises(EnvironmentFault):
        play(environment, 0, steps=3)
    environment.close()
    assert not multiprocessing.active_children()


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
        ("needs_a_package", ConfigurationError, "pip install swim"),
        ("Nothing", UnknownNameError, "unknown environment"),
    ],
)
def test_build_error_in_worker(level, kind, line):
    with pytest.raises(kind):
        build(level)
    assert not multiprocessing.active_children()


def test_workers_end_after_main_process_is_killed():
    program = (
        "import multiprocessing, sys, time\n"
        "from coach_rl.environments.gymnasium import GymnasiumParameters\n"
        "environment = GymnasiumParameters(level='CartPole-v1', vectorization='subprocess',\n"
        "    processes=2, start_method='fork').build(num_envs=2)\n"
        "environment.reset(seed=0)\n"
        "print(*[child.pid for child in multiprocessing.active_children()], flush=True)\n"
        "time.sleep(3600)\n"
    )
    main = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=Path.home()
    )
    with main:
        pids = [int(pid) for pid in main.stdout.readline().split()]
        workers = [psutil.Process(pid) for pid in pids]
        main.kill()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive


@pytest.mark.parametrize("reward", [2, True, np.float32(2), np.array(2.0)])
def test_reward_of_any_number_type(reward):
    environment = build("Answers", "sync", kwargs={"reward": reward, "success": np.True_})
    environment.reset(seed=0)
    environment.send(np.zeros(ROWS, np.int64))
    answer = environment.recv()
    assert answer.reward.tolist() == [float(reward)] * ROWS
    assert answer.info["is_success"].tolist() == [True] * ROWS


@pytest.mark.parametrize("start_method", ["spawn", "fork"])
def test_worker_of_a_class_in_a_preset_is_sent_its_source(tmp_path, monkeypatch, start_method):
    file = tmp_path / "my_preset.py"
    file.write_text("from little_environments import Plain as Base\nclass Mine(Base): pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    name = "coach_preset_my_preset_1a2b"
    load_module(name, file.read_text(), path=file, file=file)
    description = GymnasiumParameters(
        level=f"{name}:Mine", vectorization="subprocess", start_method=start_method
    )
    environment = description.build(num_envs=1)
    assert len(environment.reset(seed=0)) == 1
    environment.close()
    del sys.modules[name]
