"""A run folder appears whole, under a name of its own, and rebuilds the experiment."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
import torch

from coach_rl.configuration.preset_file import Preset
from coach_rl.configuration.trust import remember_own_code
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.checkpoint import write_checkpoint
from coach_rl.runs.folder import RunFolder, create_run_folder, find_folder, manifests_in, runs_in
from coach_rl.runs.manifest import Origin, code_of, experiment_json, make_manifest
from coach_rl.sessions.opening import rebuild
from coach_rl.sessions.session import run_experiment
from tests.small_runs import FAKE, QUIET, TWO_LEVELS, change_manifest, preset

STORAGE = "agent.memory.storage"
PRESET, DDPG = preset(), preset("Pendulum_DDPG")


def make(
    root: Path,
    preset: Preset = PRESET,
    change: Mapping[str, object] = MappingProxyType({}),
    *,
    device: str = "auto",
    **panel: object,
) -> RunFolder:
    """A run's folder, before it has begun."""
    manager = preset.configure({**panel, **change})
    origin = Origin(preset=preset, panel=panel)
    task = Runtime(seed=5, device=device)
    experiment = experiment_json(manager, task, manager.parameters.checkpoints)
    code = code_of(manager, experiment)
    manifest = make_manifest(manager, experiment, code, name="walk", origin=origin)
    remember_own_code([], (preset.source, str(preset.reference.path)))
    return create_run_folder(root, "walk", manifest, preset.source)


def test_create_run_folder_in_the_same_second_has_its_own_name(tmp_path):
    folders = {make(tmp_path).path for _ in range(5)}
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
def test_create_run_folder_name_has_task_seed_and_time(tmp_path, level, word):
    folder = make(tmp_path, level=level)
    assert re.fullmatch(
        re.escape(word) + r"_seed5_\d{4}(-\d\d){2}_\d\d(-\d\d){2}", folder.path.name
    )
    assert folder.path.parent == tmp_path / "walk"
    manifest = json.loads(folder.manifest.read_text())
    assert (manifest["level"], manifest["task"]["seed"]) == (level, 5)


def test_runs_in_a_folder_are_in_the_order_they_began(tmp_path):
    folders = [make(tmp_path) for _ in range(3)]
    for folder, second in zip(folders, (30, 10, 20), strict=True):
        change_manifest(folder, created=f"2026-05-01T10:00:{second}+00:00")
    assert runs_in(tmp_path / "walk") == [folders[index].path for index in (1, 2, 0)]
    assert runs_in(folders[0].path) == runs_in(tmp_path / "nowhere") == []


def test_run_whose_folder_is_being_made_is_not_listed(tmp_path):
    folder = make(tmp_path)
    unfinished = folder.path.rename(folder.path.with_name(".new-host-1-x"))
    assert manifests_in(tmp_path / "walk") == runs_in(tmp_path / "walk") == []
    with pytest.raises(ConfigurationError, match="`coach runs FOLDER` lists those in a folder"):
        find_folder(tmp_path)
    unfinished.rename(folder.path)
    assert manifests_in(tmp_path / "walk") == [folder.manifest]
    with pytest.raises(ConfigurationError, match="runs of the experiments walk in it"):
        find_folder(tmp_path)


def test_rebuild_equals_the_experiment(tmp_path):
    folder = make(tmp_path, learning_rate=0.25)
    manager, task, manifest = rebuild(folder)
    assert manager.parameters == PRESET.build({"learning_rate": 0.25}).parameters
    assert task == Runtime(seed=5, device=resolved_device("auto"), threads=1)
    assert manifest["preset"]["name"] == "fake_preset"
    assert folder.preset.read_text() == FAKE.read_text()


def test_rebuild_classes_of_the_preset_are_those_of_its_copy(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FAKE.read_text() + "\nfrom pathlib import Path\nHOME = Path(__file__).parent\n")
    mine = preset(file)
    folder = make(tmp_path, mine)
    file.unlink()
    del sys.modules[mine.module_name]
    manager, _, _ = rebuild(folder)
    agent = type(manager.parameters.levels[0].agent)
    assert agent.__name__ == "WalkAgent"
    assert tmp_path == sys.modules[agent.__module__].HOME


@pytest.mark.parametrize(
    ("field", "value", "has_begun", "expected"),
    [
        ("agent.update_mode", "captured", True, "auto"),
        ("agent.update_mode", "eager", True, "eager"),
        (STORAGE, "pinned", True, "cpu"),
        (STORAGE, "device", True, "device"),
        ("agent.update_mode", "captured", False, "captured"),
        (STORAGE, "pinned", False, "pinned"),
    ],
)
def test_rebuild_run_from_a_gpu_without_one_changes_what_has_begun(
    tmp_path, field, value, has_begun, expected
):
    folder = make(tmp_path, DDPG, {field: value}, device="cuda")
    if has_begun:
        write_checkpoint(folder.checkpoints / "step_100", {}, notes={})
    with pytest.warns(CoachWarning):
        rebuilt, task, _ = rebuild(folder, "cpu")
    assert task.device == "cpu"
    assert rebuilt.parameters == DDPG.configure({field: expected}).parameters


def test_rebuild_auto_is_the_device_that_it_was(tmp_path):
    folder = run_experiment(
        PRESET.build(),
        Runtime(device="auto"),
        name="walk",
        root=tmp_path,
        settings=QUIET,
    ).folder
    here = resolved_device("auto")
    assert json.loads(folder.manifest.read_text())["task"]["device"] == here
    assert rebuild(folder)[1].device == here


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA devices")
def test_rebuild_run_from_a_missing_gpu_warns(tmp_path):
    folder = make(tmp_path, DDPG, device="cuda")
    with pytest.warns(CoachWarning):
        _, task, _ = rebuild(folder)
    assert task.device == "cpu"
    with pytest.raises(ConfigurationError):
        rebuild(folder, "cuda")


def test_rebuild_without_learning_has_no_memory(tmp_path):
    folder = make(tmp_path, preset(f"{TWO_LEVELS}:td3_above_td3"))  # a memory on each level
    manager, _, _ = rebuild(folder, learns=False)
    levels = manager.parameters.levels
    assert [level.agent.memory.storage for level in levels] == ["none", "none"]


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


def test_rebuild_own_parameters_are_kept(tmp_path):
    (tmp_path / "warehouse.py").write_text(WAREHOUSE)
    warehouse = preset(tmp_path / "warehouse.py")
    folder = make(tmp_path, warehouse, device="cuda")
    write_checkpoint(folder.checkpoints / "step_100", {}, notes={})
    own = warehouse.build().parameters.environment
    for learns, storage in ((True, "cpu"), (False, "none")):
        with pytest.warns(CoachWarning):
            parameters = rebuild(folder, "cpu", learns=learns)[0].parameters
        assert parameters.environment == own
        assert parameters.agent.memory.storage == storage
        assert parameters.agent.memory.shelves == 7


def test_create_run_folder_failed_manifest_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        create_run_folder(tmp_path, "walk", {"x": object()}, None)
    assert list((tmp_path / "walk").iterdir()) == []
