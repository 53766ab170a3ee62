"""Golden runs on a GPU: captured updates, storage of memories, resuming, moving between devices."""

import importlib.util
import json
import shutil
from functools import cache

import numpy as np
import pytest
from golden_runs import RUNS, UNTIMED, networks, run_folder, untimed
from safetensors.numpy import load_file

from coach_rl.architectures import update_engine
from coach_rl.cli.main import main
from coach_rl.runs.checkpoint import list_checkpoints

pytestmark = [
    pytest.mark.golden,
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning"),
]
REPLAY = (
    "CartPole_DQN, dueling, three steps",
    "Mujoco_DDPG",
    "Mujoco_TD3",
    "Mujoco_SAC, learned temperature",
)
OTHERS = {
    "Mujoco_PPO": "",
    "Mujoco_PPO_KL": "",
    "CartPole_PPO": "",
    "BitFlip_DQN_HER": "",
    "Pendulum_HAC, three levels": "",
    "PointMaze_HIRO": "",
    "AntMaze_HRAC, landmarks": "",
    "Gates_HiTS": "",
    "PointMass_DIAYN": "",
    "PointMaze_METRA": "",
    "PointMass_PPO_Skills, option_critic": (
        "levels.0.agent.update_mode=auto; levels.1.agent.update_mode=auto"
    ),
}
"""Runs by name, with the changes that let `auto` decide where the preset does not."""
OFTEN, OFTEN_RECORDS = ("--checkpoint_steps", "20"), "schedule.progress_interval=20"
RESUMED = ("Mujoco_TD3", "Pendulum_HAC, three levels", "Mujoco_PPO_KL")


def tensors(folder):
    """Everything in the last checkpoint, by path."""
    return load_file(list_checkpoints(folder / "checkpoints")[-1] / "tensors.safetensors")


def log(folder):
    records = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    names = ("kind", "level", "agent", "environment_steps", "training_steps")
    return [
        [*(each[name] for name in names), untimed(each["scalars"])]
        for each in records
        if each["kind"] in UNTIMED
    ]


def modes(folder):
    return set(json.loads((folder / "manifest.json").read_text())["updates"].values())


def require_package(name):
    package = RUNS[name].package
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def assert_same_run(one, other):
    """The same figures and, to the last bit, the same networks, optimisers and generators."""
    assert log(one) == log(other)
    found, expected = tensors(one), tensors(other)
    assert found.keys() == expected.keys()
    for path, values in expected.items():
        np.testing.assert_array_equal(found[path], values, err_msg=path)


@pytest.fixture(scope="module")
def eager_run(tmp_path_factory):
    """Makes golden runs on the GPU with eager updates, each once."""

    @cache
    def made(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(update_engine, "resolved_mode", lambda *_, **__: "eager")
            folder = tmp_path_factory.mktemp("eager")
            return run_folder(RUNS[name], folder, changes=OTHERS.get(name, ""))

    return made


@pytest.mark.parametrize("name", [name for name in OTHERS if name in RUNS])
def test_captured_updates_equal_eager_ones_bit_for_bit(name, eager_run, tmp_path):
    require_package(name)
    captured, eager = run_folder(RUNS[name], tmp_path, changes=OTHERS[name]), eager_run(name)
    assert (modes(captured), modes(eager)) == ({"captured"}, {"eager"})
    assert_same_run(captured, eager)


@pytest.mark.parametrize("storage", ["cpu", "pinned", "device"])
@pytest.mark.parametrize("name", REPLAY)
def test_captured_updates_from_any_memory_equal_eager_ones(name, storage, eager_run, tmp_path):
    captured = run_folder(RUNS[name], tmp_path, changes=f"agent.memory.storage={storage}")
    assert modes(captured) == {"captured"}
    assert log(captured) == log(eager_run(name))
    found, expected = tensors(captured), tensors(eager_run(name))
    learned = [path for path in expected if "/memory/" not in path]  # stored as the memory likes
    assert learned
    for path in learned:
        np.testing.assert_array_equal(found[path], expected[path], err_msg=path)


@pytest.mark.parametrize("name", [name for name in RESUMED if name in RUNS])
def test_a_captured_run_stopped_halfway_and_resumed_equals_never_stopped(name, tmp_path):
    whole = run_folder(RUNS[name], tmp_path, *OFTEN, changes=OFTEN_RECORDS)
    resumed = halfway(whole, tmp_path)
    assert modes(resumed) == {"captured"}
    assert_same_run(resumed, whole)


@pytest.mark.parametrize(("begun", "resumed"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_run_resumed_on_another_device_continues_to_rounding(begun, resumed, tmp_path, capsys):
    run = RUNS["Mujoco_TD3"]
    whole = run_folder(run, tmp_path, *OFTEN, "--device", begun, changes=OFTEN_RECORDS)
    other = halfway(whole, tmp_path, "--device", resumed)
    assert f"device {begun}, now {resumed}" in capsys.readouterr().err
    (mode,) = modes(other)
    assert mode.startswith("eager (")
    found, expected = networks(tensors(other)), networks(tensors(whole))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-2, atol=1e-3, err_msg=name)


def halfway(run, folder, *flags):
    """A copy of the run, resumed from its checkpoint in the middle."""
    copied = shutil.copytree(run, folder / "copied" / run.name)
    checkpoints = list_checkpoints(copied / "checkpoints")
    middle = checkpoints[len(checkpoints) // 2 - 1]
    assert main(["-crd", str(middle), "--drop_later", "--plain", "-ntb", *flags]) == 0
    return copied


def test_a_run_says_at_its_start_that_it_captures(tmp_path, capsys):
    run_folder(RUNS["Pendulum_SAC"], tmp_path)
    assert "\nupdates:    main/agent captured\n" in capsys.readouterr().out
