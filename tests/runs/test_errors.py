"""Run folders that are refused, or read with a warning: a call, the kind of error, its message."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.configuration.file_writing import make_folder, without_links
from coach_rl.core.clock import Phase
from coach_rl.core.errors import CheckpointError
from coach_rl.runs import packing
from coach_rl.runs.checkpoint import (
    find_checkpoint,
    list_checkpoints,
    read_checkpoint,
    write_checkpoint,
)
from coach_rl.runs.folder import RunFolder, find_run
from coach_rl.runs.lock import GONE_AFTER_SECONDS, LOCK, locked
from coach_rl.runs.logs import log_notes
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.opening import rebuild
from tests.refusals import check_refused
from tests.runs.test_appended_entries import filled, flipped, truncated
from tests.runs.test_checkpoint import other_version, round_trip
from tests.runs.test_damaged_files import reseal
from tests.runs.test_folder import make
from tests.runs.test_hostile_links import append, cut, make_arrays, take_lock
from tests.runs.test_lock import left_by
from tests.runs.test_logs import cut_logs
from tests.small_runs import QUIET, change_manifest, manifest_of, preset

C, D, U, W = rl.ConfigurationError, CheckpointError, rl.UnknownNameError, rl.CoachWarning
Use = Callable[[Path], object]
HERE = Path()


def resume(run: Path, **more: Any) -> None:
    rl.resume_experiment(run, steps=rl.EnvironmentSteps(200), settings=QUIET, **more)


def unpacked_below(file: Path) -> None:
    file.write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(file.absolute()))
        find_run(Path("trained:CartPole_PPO"))


def evaluate(run: Path) -> None:
    rl.evaluate_run(run, episodes=rl.EnvironmentEpisodes(1))


def damaged(damage: Use) -> Use:
    def read(_: Path) -> None:
        path = HERE / "step_5"
        write_checkpoint(path, {"a": 5, "t": torch.ones(3), **filled().state_dict()}, {})
        damage(path)
        read_checkpoint(path)

    return read


def entries_of(file: str, dtype: str = "<f4") -> Use:
    form = packing.form_of(filled().state_dict()["entries"])
    form["columns"] = [["reward", dtype, []]]
    return lambda _: packing.stored_entries(HERE, form, [[file, [0, 0], [1, 1]]])


def large_state(run: Path) -> None:
    checkpoint = find_checkpoint(run / "checkpoints")
    reseal(checkpoint, "[" + "0," * 10_000 + "0]")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("coach_rl.configuration.strict_json.MOST_BYTES", 10_000)
        read_checkpoint(checkpoint)


def unreadable(run: Path) -> None:
    for checkpoint in list_checkpoints(run / "checkpoints"):
        (checkpoint / "state.json").write_text("")
    resume(run, last_good=True)


def edited(run: Path) -> None:
    text = (run / "manifest.json").read_text()
    (run / "manifest.json").write_text(text.replace("0.1", "0.2"))
    resume(run)


def of_other_seed(use: Use) -> Use:
    def change(run: Path) -> None:
        change_manifest(run, task=manifest_of(run)["task"] | {"seed": 4})
        use(run)

    return change


def from_a_gpu(_: Path) -> None:
    rebuild(make(HERE, preset("Pendulum_DDPG"), device="cuda"), "cpu")


def without_its_preset(run: Path) -> None:
    (run / "preset.py").unlink()
    rebuild(RunFolder(run))


def below_a_file(_: Path) -> Path:
    (HERE / "file").write_text("")
    return HERE / "file"


def linked(name: str) -> Use:
    def change(run: Path) -> None:
        if (run / name).exists():
            (run / name).rename(HERE / "moved")
        (run / name).symlink_to((HERE / "moved").absolute())
        resume(run)

    return change


def through_a_link(write: Use) -> Use:
    def change(_: Path) -> None:
        (HERE / "outside").write_text("precious")
        (HERE / "file").symlink_to("outside")
        write((HERE / "file").absolute())

    return change


def held_twice(folder: Path) -> None:
    with locked(folder), locked(folder):
        pass


def left_lock(**holder: Any) -> Use:
    def hold(folder: Path) -> None:
        left_by(folder, **holder)
        with locked(folder):
            pass

    return hold


def changed_log(name: str, now: str | None) -> Use:
    def change(_: Path) -> None:
        (HERE / name).write_text("1\n2\n")
        notes = log_notes(HERE)
        (HERE / name).unlink() if now is None else (HERE / name).write_text(now)
        cut_logs(HERE, notes)

    return change


CHECKPOINTS: list[tuple[Use, type[Exception], str]] = [
    *(
        (lambda _, state=state: round_trip(state, HERE), D, message)
        for state, message in [
            ({"a": {"b": object()}}, "state/x/a/b is a object, which a checkpoint cannot hold"),
            ({1: 2}, "state/x has the key 1; keys are strings"),
            ({"$array": 2}, "keys are strings without a leading"),
            (b"bytes", "state/x is a bytes"),
            (Phase.TRAIN, "state/x is a Phase"),
            (np.array(["a"]), "array of dtype <U1"),
            (np.array([object()]), "array of dtype object"),
            ({1, 2}, "state/x is a set"),
        ]
    ),
    *(
        (damaged(lambda path, damage=damage, file=file: damage(path / file)), D, message)
        for file in ("rows_000001.bin", "segments.json", "state.json", "tensors.safetensors")
        for damage, message in [
            (Path.unlink, f"step_5 lacks its file {file}"),
            (truncated, f"step_5 is damaged: {file} does not match its checksum"),
            (flipped, f"step_5 is damaged: {file} does not match its checksum"),
        ]
    ),
    (damaged(other_version), D, "version 99, ... reads 5; upgrade to coach_rl 7.0 or later"),
    (damaged(lambda path: (path / "checkpoint.json").unlink()), D, "cannot read"),
    (damaged(lambda path: (path / "checkpoint.json").write_text("{")), D, "is not valid JSON"),
    (damaged(lambda path: (path / "checkpoint.json").write_text("{}")), D, "schema version null"),
    (damaged(lambda path: path.rename(path.with_name("gone"))), D, "there is no checkpoint"),
    *(
        (entries_of(file), D, "files of the checkpoint's own")
        for file in ("../rows_000001.bin", "/etc/passwd", "state.json")
    ),
    (entries_of("rows_000001.bin", "|O"), D, "cannot be read"),
    (lambda run: write_checkpoint(below_a_file(run) / "step_1", {}, {}), D, "cannot write"),
    (lambda _: find_checkpoint(HERE), D, "there is no checkpoint in"),
    (lambda run: find_checkpoint(run / "checkpoints", "step_101"), U, "'step_101' ... did you"),
    (large_state, D, "state.json has 20,003 bytes, more than the 10,000"),
    (unreadable, D, "no checkpoint in ... can be read"),
]
FOLDERS: list[tuple[Use, type[Exception], str]] = [
    (edited, D, "damaged or has been edited ... coach fork RUN"),
    (of_other_seed(resume), D, "has seed 4, but ... step_100 was taken with seed 3"),
    (of_other_seed(evaluate), D, "has seed 4, but ... step_100 was taken with seed 3"),
    (
        lambda _: find_run(Path("trained:CartPol_PPO")),
        U,
        "unknown trained agent 'CartPol_PPO'; did you mean 'CartPole_PPO' ... --trained` lists",
    ),
    (
        lambda _: unpacked_below(HERE / "file"),
        C,
        "cannot be unpacked into ... Not a directory; set XDG_CACHE_HOME to a folder",
    ),
    (lambda _: find_run(HERE), C, "there are runs of the experiments walk in it"),
    (from_a_gpu, W, "was made with device cuda, now cpu; its numbers may"),
    (without_its_preset, D, "cannot read ... preset.py: No such file"),
    (lambda run: make(below_a_file(run), preset()), C, "cannot write to the experiment folder"),
    *((linked(name), C, f"/{name} is a symbolic link to") for name in (".lock", "checkpoints")),
    *(
        (through_a_link(write), kind, "is a symbolic link")
        for write, kind in [
            *((each, OSError) for each in (append, cut, make_arrays, make_folder)),
            (lambda path: open(path, "a", opener=without_links), OSError),  # noqa: SIM115
            (take_lock, C),
        ]
    ),
    (held_twice, C, "by process ... on host ... , started 20"),
    (left_lock(process=os.getpid()), W, "which is gone"),
    (
        left_lock(host="elsewhere", process=1, age=30),
        C,
        f"on host elsewhere, ... last active 3 ... s ago; ... or delete ... {LOCK}",
    ),
    (left_lock(host="elsewhere", process=1, age=GONE_AFTER_SECONDS + 1), W, "on host elsewhere"),
    (lambda _: (HERE / LOCK).mkdir() or held_twice(HERE), D, "should be a file and is a folder"),
    (changed_log("events.out.tfevents.1", "1\n2"), D, "has 3 bytes, but had 4 when the checkpoint"),
    (changed_log("log.jsonl", "1\n3\n"), D, "log.jsonl is damaged or has been edited"),
    (changed_log("log.jsonl", "1\n"), D, "1 whole lines, but had 2 ... ; move it out of"),
    (changed_log("log.jsonl", None), W, "has lost log.jsonl"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 100 steps."""
    root, origin = tmp_path_factory.mktemp("runs"), Origin(preset=preset())
    runtime = rl.Runtime(seed=3, device="cpu")
    manager = origin.preset.build()
    return rl.run_experiment(
        manager, runtime, name="walk", root=root, origin=origin, settings=QUIET
    ).folder.path


@pytest.mark.parametrize(("call", "kind", "message"), [*CHECKPOINTS, *FOLDERS])
def test_run_folder_error_names_value_and_rule(
    call, kind, message, finished, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = Path(shutil.copytree(finished, HERE / "walk" / finished.name))
    check_refused(lambda: call(run), kind, message)
