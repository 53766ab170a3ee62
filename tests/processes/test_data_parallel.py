"""A run shared out over the processes of torchrun is the run of one process, to rounding."""

import os
import re
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shared_runs
from shared_runs import EXPERIMENTS, TASK, resume, run
from torch.distributed import TCPStore

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.errors import CoachWarning
from coach_rl.core.runtime import ONE_PROCESS, OneProcess
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.sessions.data_parallel import check_group
from coach_rl.testing import assert_same_state
from coach_rl.testing.states import flat_state
from tests.small_runs import lines_of, state_of

HERE = Path(__file__).parent


def python(*words, cwd=None, **variables):
    environment = {
        **os.environ,
        **variables,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
    }
    command = [sys.executable, *words]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=cwd
    )


def torchrun(*words):
    return python("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", *words)


ALONE = """
import sys
from pathlib import Path
from shared_runs import EXPERIMENTS, run
from coach_rl.core.runtime import ONE_PROCESS
run(EXPERIMENTS[sys.argv[1]], Path(sys.argv[2]), ONE_PROCESS)
"""
"""A run of one process, with as many threads as those of torchrun have."""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Runs of two processes."""
    folder = tmp_path_factory.mktemp("two")
    done = torchrun(shared_runs.__file__, str(folder))
    assert done.returncode == 0, done.stderr
    return folder


def only_run(root):
    (folder,) = (root / "run").iterdir()
    return folder


def final_state(root):
    return state_of(only_run(root))


def moments(record):
    return [record[name] for name in ("kind", "environment_steps", "training_steps", "episodes")]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_two_processes_of_32_rows_equal_one_of_64(two, tmp_path, name):
    loose = name == "ddpg"  # whose 40 updates make more of rounding, on some processors
    done = python("-c", ALONE, name, str(tmp_path))
    assert done.returncode == 0, done.stderr
    ours, theirs = lines_of(only_run(tmp_path)), lines_of(only_run(two / name))
    assert [moments(each) for each in ours] == [moments(each) for each in theirs]
    assert sum(each["kind"] == "train" for each in ours) + ours[-1]["training_steps"] > 40
    for one, other in zip(ours, theirs, strict=True):
        for metric, value in one["scalars"].items():
            if metric.startswith(("time/", "resources/")):
                continue
            near = {"rel": 2e-3, "abs": 1.0 if loose and "evaluation" in metric else 2e-4}
            assert other["scalars"][metric] == pytest.approx(value, **near), metric
    alone, together = final_state(tmp_path)["agents"], final_state(two / name)["agents"]
    leaves, atol = dict(flat_state(together)), 1e-2 if loose else 2e-4
    for path, leaf in flat_state(alone):
        if np.asarray(leaf).dtype.kind == "f":
            np.testing.assert_allclose(leaf, leaves[path], rtol=2e-3, atol=atol, err_msg=path)


@pytest.mark.parametrize("name", shared_runs.RESUMED)
def test_resume_in_as_many_processes_is_exact(two, name):
    assert_same_state(final_state(two / name), final_state(two / f"resumed_{name}"))


def test_resume_in_another_number_of_processes_warns(two, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which the run had
    with pytest.warns(CoachWarning):
        resume(two / "stopped_sac", ONE_PROCESS)
    state = final_state(two / "stopped_sac")
    assert state["training"]["clock"]["environment_steps"] == shared_runs.END.count
    together = final_state(two / "sac")["agents"]["main"]
    assert state["agents"]["main"]["training_steps"] == together["training_steps"]


def test_follow_different_experiments_are_refused_by_every_process(two):
    for rank in range(2):
        assert "given different experiments or seeds" in (two / f"seeds_{rank}.txt").read_text()


def test_fault_in_one_process_ends_the_run_in_all(two):
    first, second = ((two / f"fault_{rank}.txt").read_text() for rank in range(2))
    assert first.startswith("process 1 of 2: a wheel came off. The run had done 256 environment")
    assert second == "a wheel came off"


def test_killed_process_ends_the_run_with_how_to_resume(tmp_path):
    """Without torchrun itself, which may end the other process before that says why."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": "2"}
    place |= {"TORCHELASTIC_RUN_ID": "run", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    words = ("-m", "coach_rl", "train", str(HERE / "dying_preset.py"), "--plain")
    with ThreadPoolExecutor() as side_by_side:
        done, killed = side_by_side.map(
            lambda rank: python(*words, cwd=tmp_path, **place, RANK=rank, LOCAL_RANK=rank), "01"
        )
    assert killed.returncode == -signal.SIGKILL
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("coach: error:"))
    assert "another process of this run has ended" in line
    assert re.search(r"resume with: \S*torchrun --standalone --nproc_per_node=2 -m coach_rl", line)
    assert done.returncode != 0


def test_group_of_one_changes_nothing(tmp_path):
    run(EXPERIMENTS["ppo"], tmp_path, ONE_PROCESS)
    assert "processes" not in final_state(tmp_path)


class Three(OneProcess):
    """As one of three processes with equal experiments."""

    size = 3

    def gather(self, value):
        return [value] * 3


def test_check_group_what_fits_passes():
    agent = PPOAgentParameters(algorithm=PPOAlgorithmParameters(minibatch=63))
    with warnings.catch_warnings(action="error"):
        check_group(
            BasicRLGraphManager(replace(EXPERIMENTS["ppo"], num_envs=6, agent=agent)),
            replace(TASK, group=Three()),
        )
