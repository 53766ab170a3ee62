"""A run folder appears whole, under a name of its own, and rebuilds the experiment."""

import json
import re
import sys
from pathlib import Path

import pytest
import torch

from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.trust import remember_own_code
from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.inspection import parse_inspections
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.checkpoint import write_checkpoint
from coach_rl.runs.folder import RunFolder, create_run_folder, find_run, runs_in, write_manifest
from coach_rl.runs.manifest import Origin, make_manifest
from coach_rl.sessions.opening import inspected, rebuild
from coach_rl.sessions.session import RunSettings, run_experiment

FAKE = Path(__file__).parent.parent / "fake_preset.py"
STORAGE = "agent.memory.storage"


def make(root: Path, preset: Preset, **panel: object) -> RunFolder:
    manager = preset.build(panel)
    origin = Origin(preset=preset, panel=panel)
    manifest = make_manifest(manager, Runtime(seed=5), name="walk", origin=origin)
    remember_own_code([], (preset.source, str(preset.reference.path)))
    return create_run_folder(root, "walk", manifest, preset.source)


def from_a_gpu(root: Path, preset: Preset, change: dict[str, str]) -> RunFolder:
    manager, origin = preset.configure(change), Origin(preset=preset)
    manifest = make_manifest(manager, Runtime(device="cuda"), name="gpu", origin=origin)
    remember_own_code([], (preset.source, str(preset.reference.path)))
    return create_run_folder(root, "gpu", manifest, preset.source)


def test_folders_of_the_same_second_get_names_of_their_own(tmp_path: Path) -> None:
    preset = load_preset(find_preset(str(FAKE)))
    folders = {make(tmp_path, preset).path for _ in range(5)}
    assert len(folders) == 5
    assert set((tmp_path / "walk").iterdir()) == folders
    assert all((folder / "manifest.json").is_file() for folder in folders)


@pytest.mark.parametrize(
    ("level", "word"),
    [
        ("hopper", "hopper"),
        ("my_module:MyEnv", "MyEnv"),
        ("ALE/Pong-v5", "ALE_Pong-v5"),
        ("a/../../b", "a_.._.._b"),
        ("../..", "level"),
        ("x" * 300, "x" * 40),
    ],
)
def test_a_run_is_named_by_its_level_its_seed_and_the_time(
    tmp_path: Path, level: str, word: str
) -> None:
    folder = make(tmp_path, load_preset(find_preset(str(FAKE))), level=level)
    assert re.fullmatch(
        re.escape(word) + r"_seed5_\d{4}(-\d\d){2}_\d\d(-\d\d){2}", folder.path.name
    )
    assert folder.path.parent == tmp_path / "walk"
    manifest = json.loads(folder.manifest.read_text())
    assert (manifest["level"], manifest["task"]["seed"]) == (level, 5)


def test_runs_of_a_folder_come_in_the_order_they_were_begun(tmp_path: Path) -> None:
    preset = load_preset(find_preset(str(FAKE)))
    folders = [make(tmp_path, preset) for _ in range(3)]
    for folder, second in zip(folders, (30, 10, 20), strict=True):
        manifest = json.loads(folder.manifest.read_text())
        created = {"created": f"2026-05-01T10:00:{second}+00:00"}
        write_manifest(folder, manifest | created)
    assert runs_in(tmp_path / "walk") == [folders[index].path for index in (1, 2, 0)]
    assert runs_in(folders[0].path) == runs_in(tmp_path / "nowhere") == []
    with pytest.raises(ConfigurationError, match="there are runs of the experiments walk in it"):
        find_run(tmp_path)


def test_the_manifest_rebuilds_the_experiment(tmp_path: Path) -> None:
    preset = load_preset(find_preset(str(FAKE)))
    folder = make(tmp_path, preset, learning_rate=0.25)
    manager, task, manifest = rebuild(folder)
    assert manager.parameters == preset.build({"learning_rate": 0.25}).parameters
    assert task == Runtime(seed=5, device=resolved_device("auto"), threads=1)
    assert manifest["preset"]["name"] == "fake_preset"
    assert folder.preset.read_text() == FAKE.read_text()


def test_classes_of_the_preset_come_back_from_its_copy_and_find_their_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(FAKE.read_text() + "\nfrom pathlib import Path\nHOME = Path(__file__).parent\n")
    preset = load_preset(find_preset(str(mine)))
    folder = make(tmp_path, preset)
    mine.unlink()
    del sys.modules[preset.module_name]
    manager, _, _ = rebuild(folder)
    agent = type(manager.parameters.levels[0].agent)
    assert agent.__name__ == "WalkAgent"
    assert tmp_path == sys.modules[agent.__module__].HOME


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("agent.update_mode", "captured", "auto"),
        ("agent.update_mode", "eager", "eager"),
        (STORAGE, "pinned", "cpu"),
        (STORAGE, "device", "device"),
    ],
)
def test_a_run_from_a_gpu_comes_back_without_one(
    tmp_path: Path, field: str, value: str, expected: str
) -> None:
    preset = load_preset(find_preset("Pendulum_DDPG"))
    folder = from_a_gpu(tmp_path, preset, {field: value})
    write_checkpoint(folder.checkpoints / "step_100", {}, notes={})
    with pytest.warns(CoachWarning, match="device cuda, now cpu"):
        rebuilt, task, _ = rebuild(folder, "cpu")
    assert task.device == "cpu"
    assert rebuilt.parameters == preset.configure({field: expected}).parameters


@pytest.mark.parametrize("change", [{"agent.update_mode": "captured"}, {STORAGE: "pinned"}])
def test_one_that_begins_anew_keeps_what_it_asked_for(
    tmp_path: Path, change: dict[str, str]
) -> None:
    preset = load_preset(find_preset("Pendulum_DDPG"))
    folder = from_a_gpu(tmp_path, preset, change)
    with pytest.warns(CoachWarning, match="device cuda, now cpu"):
        rebuilt, _, _ = rebuild(folder, "cpu")
    assert rebuilt.parameters == preset.configure(change).parameters


def test_the_device_that_auto_was_is_remembered(tmp_path: Path) -> None:
    folder = run_experiment(
        load_preset(find_preset(str(FAKE))).build(),
        Runtime(device="auto"),
        name="walk",
        root=tmp_path,
        settings=RunSettings(tensorboard=False),
    ).folder
    here = resolved_device("auto")
    assert json.loads(folder.manifest.read_text())["task"]["device"] == here
    assert rebuild(folder)[1].device == here


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA devices")
def test_a_run_from_a_gpu_that_is_not_here_continues_with_a_warning(tmp_path: Path) -> None:
    preset = load_preset(find_preset("Pendulum_DDPG"))
    folder = from_a_gpu(tmp_path, preset, {})
    with pytest.warns(CoachWarning, match="was made with device cuda, now cpu; its numbers may"):
        _, task, _ = rebuild(folder)
    assert task.device == "cpu"
    with pytest.raises(ConfigurationError, match="device 'cuda' requested, but there are 0 GPUs"):
        rebuild(folder, "cuda")


def test_a_run_that_does_not_learn_has_no_memory(tmp_path: Path) -> None:
    preset = load_preset(find_preset("PointMaze_HAC"))  # a memory on each level
    manifest = make_manifest(preset.build(), Runtime(), name="maze", origin=Origin())
    folder = create_run_folder(tmp_path, "maze", manifest, preset.source)
    manager, _, _ = rebuild(folder, learns=False)
    levels = manager.parameters.stack
    assert [level.agent.learner.memory.storage for level in levels] == ["none", "none"]


WAREHOUSE = """
from dataclasses import dataclass, replace

from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.presets import Pendulum_DDPG


@dataclass(frozen=True, kw_only=True)
class Warehouse(PointMassParameters):
    storage: str = "pinned"
    update_mode: str = "captured"
    inspect: tuple[str, ...] = ("crates",)


@dataclass(frozen=True, kw_only=True)
class LargeMemory(ReplayMemoryParameters):
    shelves: int = 7


def graph_manager():
    parameters = Pendulum_DDPG.graph_manager(Pendulum_DDPG.Panel()).parameters
    agent = replace(parameters.agent, memory=LargeMemory(storage="pinned"))
    return BasicRLGraphManager(replace(parameters, environment=Warehouse(), agent=agent))
"""
"""A preset whose environment has parameters of the same names as the engine's."""


def test_parameters_of_a_users_own_stay_as_they_are_wherever_a_run_goes(tmp_path: Path) -> None:
    (tmp_path / "warehouse.py").write_text(WAREHOUSE)
    preset = load_preset(find_preset(str(tmp_path / "warehouse.py")))
    folder = from_a_gpu(tmp_path, preset, {})
    write_checkpoint(folder.checkpoints / "step_100", {}, notes={})
    own = preset.build().parameters.environment
    for learns, storage in ((True, "cpu"), (False, "none")):
        with pytest.warns(CoachWarning, match="device cuda, now cpu"):
            parameters = rebuild(folder, "cpu", learns=learns)[0].parameters
        assert parameters.environment == own
        assert parameters.agent.memory.storage == storage
        assert parameters.agent.memory.shelves == 7
    looked_into = inspected(preset.build(), parse_inspections("batch:nan")).parameters
    assert looked_into.environment == own
    assert looked_into.inspect == parse_inspections("batch:nan")


def test_a_missing_copy_is_reported(tmp_path: Path) -> None:
    folder = make(tmp_path, load_preset(find_preset(str(FAKE))))
    folder.preset.unlink()
    with pytest.raises(CheckpointError, match=r"cannot read .*preset\.py: No such file"):
        rebuild(folder)


def test_a_root_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write to the experiment folder"):
        make(tmp_path / "file", load_preset(find_preset(str(FAKE))))


def test_nothing_is_left_where_the_manifest_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        create_run_folder(tmp_path, "walk", {"x": object()}, None)
    assert list((tmp_path / "walk").iterdir()) == []
