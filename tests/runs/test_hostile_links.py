"""A link in a run's folder, symbolic or hard, leads nothing outside of it to be written."""

import json
import os
import shutil
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import gethostname

import numpy as np
import pytest
from psutil import Process

from coach_rl.configuration.file_writing import replacing, without_links
from coach_rl.configuration.strict_json import sealed
from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, write_checkpoint
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.runs.logs import Cut, write_columns
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import resume_experiment
from coach_rl.telemetry.log_files import CsvSink, LineFile
from tests.sessions.test_runner import SETTINGS, run
from tests.small_runs import contents, log_of
from tests.telemetry.test_log_files import learned

PRECIOUS = b"precious\n"
MODES = ("w", "w+", "a", "a+", "r+")


@pytest.fixture
def outside(tmp_path):
    """A folder with files of the user."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_bytes(PRECIOUS)
    return folder


def forget_lines_of(run: Path, log: str) -> None:
    """Let the last checkpoint count no lines of a log, under a checksum that fits."""
    path = find_checkpoint(run / "checkpoints") / "checkpoint.json"
    about = json.loads(path.read_text())
    about["notes"]["logs"][log] = 0
    about["notes"]["headers"].pop(log, None)
    about["notes"]["crc32"].pop(log, None)
    path.write_text(json.dumps(sealed(about)))


@pytest.mark.parametrize(
    "name", [".lock", "log.jsonl", "episodes.csv", "checkpoints", "videos", "faults", "new.csv"]
)
def test_resume_link_in_the_folder_is_refused_by_name(tmp_path, outside, name):
    folder = run(tmp_path, signal_at=60).folder.path
    if name in ("log.jsonl", "episodes.csv"):
        forget_lines_of(folder, name)
    place = folder / name
    is_folder = name in ("checkpoints", "videos", "faults")
    target = outside if is_folder else outside / "file"
    if place.exists():
        place.rename(outside / "moved") if is_folder else place.unlink()
        target = outside / "moved" if is_folder else target
    before = contents(outside) if not (outside / "moved").exists() else None
    place.symlink_to(target)
    with pytest.raises(ConfigurationError):
        resume_experiment(folder, steps=EnvironmentSteps(200), settings=SETTINGS)
    assert (outside / "file").read_bytes() == PRECIOUS
    assert before is None or contents(outside) == before


def test_evaluate_linked_folder_nothing_is_written_into_it(tmp_path, outside):
    result = run(tmp_path)
    result.folder.evaluations.symlink_to(outside)
    with pytest.warns(CoachWarning):
        _, file = evaluate_run(result.folder.path, episodes=EnvironmentEpisodes(1))
    assert file is None
    assert contents(outside) == {"file": PRECIOUS}


def append(path: Path) -> None:
    with closing(LineFile(path)) as file:
        file.append("line\n")


def cut(path: Path) -> None:
    Cut(path, 0).make()


def widen(path: Path) -> None:
    """Add a column to a table, whose unfinished new version is `path`."""
    table = path.parent / "main.csv"
    table.write_text("a\n1\n")
    sink = CsvSink(path.parent)
    path.rename(table.with_suffix(".csv.new"))
    sink.write(learned(1, agent="", b=2.0))
    sink.close()
    assert table.read_text().startswith("a,environment_steps")


def take_lock(path: Path) -> None:
    path.rename(path.with_name(".lock"))
    with locked(path.parent):
        pass


def make_arrays(path: Path) -> None:
    write_columns(path, {"a": np.zeros(2)})


def reopened(mode: str, path: Path) -> None:
    with open(path, mode, opener=without_links) as file:
        file.write("text")


@pytest.mark.parametrize(
    ("write", "refused"),
    [(append, OSError), (cut, OSError), (make_arrays, OSError), (take_lock, ConfigurationError),
     (widen, None)],
)  # fmt: skip
def test_writer_link_in_place_of_its_file_is_not_followed(tmp_path, outside, write, refused):
    folder = tmp_path / "run"
    folder.mkdir()
    link = folder / "file"
    link.symlink_to(outside / "file")
    if refused is None:
        write(link)
    else:
        with pytest.raises(refused):
            write(link)
    assert contents(outside) == {"file": PRECIOUS}


@pytest.mark.parametrize(
    "write",
    [append, cut, make_arrays, take_lock, widen, *(partial(reopened, mode) for mode in MODES)],
)
def test_writer_hard_link_in_place_of_its_file_leaves_the_other_one_alone(tmp_path, outside, write):
    folder = tmp_path / "run"
    folder.mkdir()
    os.link(outside / "file", folder / "file")
    write(folder / "file")
    assert contents(outside) == {"file": PRECIOUS}


@pytest.mark.parametrize("with_tensorboard", [False, True])
def test_resume_copy_by_hard_links_leaves_the_original_alone(tmp_path, with_tensorboard):
    settings = replace(SETTINGS, tensorboard=with_tensorboard)
    original = run(tmp_path, settings, signal_at=60).folder.path
    before, lock = contents(original), (original / ".lock").read_bytes()
    copy = tmp_path / "copy" / original.name
    shutil.copytree(original, copy, copy_function=os.link)
    resume_experiment(copy, settings=settings)
    assert (contents(original), (original / ".lock").read_bytes()) == (before, lock)
    assert log_of(copy)[-1]["kind"] == "final_evaluation"
    resume_experiment(original, settings=settings)
    assert log_of(copy) == log_of(original)


def test_resume_copy_by_hard_links_of_a_held_run_is_refused(tmp_path):
    original = run(tmp_path, signal_at=60).folder.path
    copy = tmp_path / "copy" / original.name
    parent = Process(os.getppid())
    holder = {"process": parent.pid, "host": gethostname(), "started": parent.create_time()}
    (original / ".lock").write_text(json.dumps(holder))
    shutil.copytree(original, copy, copy_function=os.link)
    with pytest.raises(RunInUseError):
        resume_experiment(copy, settings=SETTINGS)
    assert json.loads((original / ".lock").read_text()) == holder


def test_checkpoint_link_in_place_of_its_unfinished_folder_keeps_the_target(tmp_path, outside):
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    (checkpoints / f".step_5.new-{os.getpid()}").symlink_to(outside)
    (checkpoints / ".step_4.new-1").symlink_to(outside)
    with pytest.raises(CheckpointError):
        write_checkpoint(checkpoints / "step_5", {"a": 1}, {})
    write_checkpoint(checkpoints / "step_6", {"a": 1}, {})
    assert contents(outside) == {"file": PRECIOUS}
    assert [path.name for path in list_checkpoints(checkpoints)] == ["step_6"]


def test_replacing_link_is_replaced_and_its_target_kept(tmp_path, outside):
    link = tmp_path / "summary.json"
    link.symlink_to(outside / "file")
    with replacing(link) as unfinished:
        unfinished.write_text("{}")
    assert (link.read_text(), link.is_symlink()) == ("{}", False)
    assert contents(outside) == {"file": PRECIOUS}


def test_the_run_itself_may_be_reached_through_a_link(tmp_path):
    folder = run(tmp_path / "disk", signal_at=60).folder
    (tmp_path / "link").symlink_to(folder.path.parent)
    result = resume_experiment(tmp_path / "link" / folder.path.name, settings=SETTINGS)
    assert log_of(folder)[-1]["kind"] == "final_evaluation"
    assert result.environment_steps == 100


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_run_modes_of_all_files_and_folders_follow_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = run(tmp_path).folder.path
        evaluate_run(folder, episodes=EnvironmentEpisodes(1))
    finally:
        os.umask(before)
    paths = [folder, *folder.rglob("*")]
    assert any(path.name == "tensors.safetensors" for path in paths)
    modes = {str(path): path.stat().st_mode & 0o777 for path in paths}
    assert modes == {str(p): (0o777 if p.is_dir() else 0o666) & ~umask for p in paths}
