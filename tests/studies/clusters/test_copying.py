"""A copy of a run is the run, and can be resumed wherever the copying stopped."""

import shutil
from functools import partialmethod
from pathlib import Path

import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import CheckpointError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, point, read_checkpoint
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.logs import planned_cuts
from coach_rl.sessions.session import run_experiment
from coach_rl.sessions.settings import RunSettings
from coach_rl.studies.clusters import copying
from coach_rl.studies.clusters.copying import RunCopy, copy_run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    changes = {
        "agent.learning.learning_starts": 20,
        "agent.learning.batch": 8,
        "agent.memory.capacity": 500,
        "schedule.training": 80,
        "schedule.heatup": 20,
        "schedule.progress_interval": 20,
    }
    result = run_experiment(
        load_preset(find_preset("Pendulum_SAC")).configure(changes),
        Runtime(device="cpu", threads=1),
        name="run",
        root=tmp_path_factory.mktemp("made"),
        settings=RunSettings(
            checkpoints=CheckpointParameters(every_seconds=1e-9, keep_last=3),
            final_episodes=EnvironmentEpisodes(1),
        ),
    )
    return result.folder.path


@pytest.fixture
def run(made, tmp_path):
    return shutil.copytree(made, tmp_path / "here" / made.name)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".lock" not in path.name
    }


def earlier(run, folder):
    """The run as it was at its third checkpoint, when its log was a line further."""
    early = shutil.copytree(run, folder / run.name)
    checkpoints = RunFolder(early).checkpoints
    kept = list_checkpoints(checkpoints)[:3]
    for path in list_checkpoints(checkpoints)[3:]:
        shutil.rmtree(path)
    point(checkpoints, "last", kept[-1].name)
    point(checkpoints, "best", None)
    RunFolder(early).summary.unlink()
    for cut in planned_cuts(early, read_checkpoint(kept[-1])):
        cut.make()
    return early


def test_copy_run_equals_run_byte_for_byte(run, tmp_path, monkeypatch):
    monkeypatch.setattr(copying, "CHUNK_BYTES", 1 << 14)
    name = copy_run(RunCopy(run), RunCopy(tmp_path / "there" / run.name))
    assert name == run.name
    assert contents(tmp_path / "there" / run.name) == contents(run)


def test_copy_run_existing_content_not_sent(run, tmp_path):
    target = RunCopy(tmp_path / "there" / run.name)
    copy_run(RunCopy(earlier(run, tmp_path / "early")), target)
    known = {path.read_bytes() for path in target.run.path.rglob("*") if path.is_file()}
    sent = target.missing(RunCopy(run).listing())
    assert sent
    assert not any((run / path).read_bytes() in known for path in sent)
    copy_run(RunCopy(run), target)
    assert target.missing(RunCopy(run).listing()) == []
    assert contents(target.run.path) == contents(run)


def test_copy_run_removals_followed(run, tmp_path):
    target = RunCopy(tmp_path / "there" / run.name)
    copy_run(RunCopy(run), target)
    early = earlier(run, tmp_path / "early")
    copy_run(RunCopy(early), target)
    assert contents(target.run.path) == contents(early)


def test_copy_run_interrupted_copy_resumable(run, tmp_path, monkeypatch):
    early = earlier(run, tmp_path / "early")
    moves = {name: getattr(Path, name) for name in ("rename", "replace")}
    interruptions = 0
    for last in range(100):
        target = RunCopy(shutil.copytree(early, tmp_path / f"there{last}" / run.name))
        done = []

        def counted(path, to, *, move, done=done, last=last):
            done.append(to)
            if len(done) > last:
                raise OSError("no space left")
            return move(path, to)

        with monkeypatch.context() as patch:
            for name, move in moves.items():
                patch.setattr(Path, name, partialmethod(counted, move=move))
            try:
                copy_run(RunCopy(run), target)
            except OSError:
                interruptions += 1
        newest = read_checkpoint(find_checkpoint(target.run.checkpoints))
        assert planned_cuts(target.run.path, newest)
        is_last = newest.path.name == find_checkpoint(RunFolder(run).checkpoints).name
        assert is_last or not target.run.summary.exists()
        if len(done) <= last:
            break
        copy_run(RunCopy(run), target)
        assert contents(target.run.path) == contents(run)
    assert interruptions > 5


def test_copy_run_corrupted_content_error(run, tmp_path):
    class Damaged(RunCopy):
        def put(self, state, begin, data):
            super().put(state, begin, data[:-1] + b"x")

    with pytest.raises(CheckpointError, match="did not arrive as sent"):
        copy_run(RunCopy(run), Damaged(tmp_path / "there" / run.name))
    assert not (tmp_path / "there" / run.name).exists()


def test_copy_run_changing_checkpoints_listed_again(run, tmp_path):
    class Removing(RunCopy):
        def read(self, path, begin, end):
            if not self.removed:
                self.removed = list_checkpoints(self.run.checkpoints)[0]
                shutil.rmtree(self.removed)
            return super().read(path, begin, end)

    source = Removing(run)
    source.removed = None
    copy_run(source, RunCopy(tmp_path / "there" / run.name))
    assert source.removed is not None
    assert contents(tmp_path / "there" / run.name) == contents(run)


def test_copy_run_without_checkpoint_leaves_logs(run, tmp_path):
    shutil.rmtree(RunFolder(run).checkpoints)
    RunFolder(run).summary.unlink()
    copy_run(RunCopy(run), RunCopy(tmp_path / "there" / run.name))
    assert sorted(contents(tmp_path / "there" / run.name)) == ["manifest.json"]
