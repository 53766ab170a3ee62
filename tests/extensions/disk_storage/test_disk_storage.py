import errno
import gc
import os
import shutil
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

import coach_rl as rl
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.core.errors import CheckpointError, RunError
from coach_rl.core.scratch import NAME, Scratch
from coach_rl.extensions.disk_storage import disk_tables
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.runs.checkpoint import read_checkpoint, remove_checkpoint, write_checkpoint
from tests.memories.replay_worlds import (
    OBSERVED,
    Cameras,
    Stream,
    build,
    observed,
    same_batches,
)
from tests.memories.test_memory_machine import EXAMPLES, ReplayMachine
from tests.samples import drawn

ROWS = 3
CAPACITY = 120
"""Transitions; 40 a row, in files of 3."""
KINDS = {
    "numbers": ({"n_step": 3}, OBSERVED, lambda seed: Stream(ROWS, seed)),
    "frames": ({"frame_stack": ("camera",)}, observed(3), lambda seed: Cameras(ROWS, 3, seed)),
    "stacks": ({}, observed(2), lambda seed: Cameras(ROWS, 2, seed)),
    "priorities": (
        {"prioritised": rl.PrioritisedParameters()},
        OBSERVED,
        lambda seed: Stream(ROWS, seed),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def built(kind, storage=None, *, scratch=None, capacity=CAPACITY):
    parameters, space, _ = KINDS[kind]
    storage = rl.DiskStorage() if storage is None else storage
    where = {"capacity": capacity, "storage": storage, "scratch": scratch}
    return build(num_envs=ROWS, observed=space, seed=5, discount=0.9, **where, **parameters)


def world(kind, seed=0):
    return KINDS[kind][2](seed)


def rows_of(kind):
    """Which rows step at each moment, those of every run alike."""
    rng = np.random.default_rng(1)
    while True:
        yield rng.permutation(ROWS)[: rng.integers(1, ROWS + 1)]


def advance(memories, stream, rows, steps):
    for _ in range(steps):
        transition = stream.step(next(rows))
        for memory in memories:
            memory.add(transition)


def assert_same(left, right, batches=5):
    for _ in range(batches):
        first = left.sample(16)
        second = right.sample(16)
        same_batches(first, second)
        errors = first.reward - 0.5
        left.note_errors(first.position, errors)
        right.note_errors(second.position, errors)
    shown = right.trajectories()
    for path, values in left.trajectories().items():
        np.testing.assert_array_equal(values, shown[path], err_msg=path)


def files_in(folder):
    return [path for path in folder.rglob("*.bin") if path.is_file()]


def bytes_on_disk(folder):
    """Bytes of all files, each counted once whatever number of names it has."""
    found = {path.stat().st_ino: path.stat().st_size for path in files_in(folder)}
    return sum(found.values())


def read_and_write(memory, path):
    write_checkpoint(path, memory.state_dict(), {})
    return read_checkpoint(path)


class DiskMachine(ReplayMachine):
    """The same memory on the disk."""

    def __init__(self, number):
        super().__init__(number)
        self.described["storage"] = rl.DiskStorage()
        self.memory = build(**self.described)

    @rule(storage=st.sampled_from([rl.DiskStorage(), "cpu"]))
    def move(self, storage):
        """Memories that load from now on are on the disk, or not."""
        self.described["storage"] = storage


@pytest.mark.parametrize("number", [10, *drawn(range(10), one_of=3)])
def test_memory_on_the_disk_equals_plain_lists(number, monkeypatch):
    monkeypatch.setattr(disk_tables, "FILES_PER_ROW", 4)  # which have several entries each
    run_state_machine_as_test(partial(DiskMachine, number), settings=EXAMPLES)


def test_checkpoint_links_full_files_and_writes_the_rest_alone(tmp_path):
    scratch = Scratch()
    with scratch.within(tmp_path):
        memory = built("frames", scratch=scratch)
        advance([memory], world("frames"), rows_of("frames"), 200)
        saved = read_and_write(memory, tmp_path / "step_1")
        store = saved.state["store"]
        entries = store["frames"]["camera"]["frames"]
        linked = [path for path in files_in(tmp_path / "step_1") if path.stat().st_nlink > 1]
        assert len(linked) == len(entries.files) + len(store["transitions"].files) > 60
        *_, written = entries.segments
        assert len(entries.files) == len(entries.segments) - 1
        assert written.entries <= ROWS * 3  # the files that are not full
        again = built("frames", scratch=scratch)
        again.load_state_dict(saved.state)
        second = read_and_write(again, tmp_path / "step_2")
        inodes = {path.stat().st_ino for path in linked}
        kept = {path.stat().st_ino for path in files_in(tmp_path / "step_2")}
        assert inodes <= kept
        again.load_state_dict(second.state)
        assert_same(memory, again)


def test_files_that_a_checkpoint_names_are_never_written_again(kind, tmp_path):
    scratch = Scratch()
    with scratch.within(tmp_path):
        memory = built(kind, scratch=scratch)
        stream = world(kind)
        rows = rows_of(kind)
        advance([memory], stream, rows, 150)
        write_checkpoint(tmp_path / "step_1", memory.state_dict(), {})
        contents = {path: path.read_bytes() for path in files_in(tmp_path / "step_1")}
        changed = {path: path.stat().st_mtime_ns for path in contents}
        advance([memory], stream, rows, 500)
        read_checkpoint(tmp_path / "step_1")  # compares checksums
        for path, content in contents.items():
            assert path.read_bytes() == content
            assert path.stat().st_mtime_ns == changed[path]


def test_disk_space_is_bounded_and_files_go_with_their_last_checkpoint(tmp_path):
    scratch = Scratch()
    with scratch.within(tmp_path):
        memory = built("frames", scratch=scratch)
        stream = world("frames")
        rows = rows_of("frames")
        advance([memory], stream, rows, 200)
        full = bytes_on_disk(tmp_path)
        store = memory.store
        per_row = 40 + 3 + 2 * 3  # what is kept, a stack's frames before, two files that are open
        sizes = [store.table._dtype.itemsize, store._rings["camera"]._frames._dtype.itemsize]
        assert full <= ROWS * per_row * sum(sizes)
        for number in range(2, 8):
            advance([memory], stream, rows, 100)
            write_checkpoint(tmp_path / f"step_{number}", memory.state_dict(), {})
            if number > 2:
                remove_checkpoint(tmp_path / f"step_{number - 1}")
            assert bytes_on_disk(tmp_path / NAME) <= ROWS * per_row * sum(sizes)
        alive = bytes_on_disk(tmp_path / NAME)
        written = ROWS * 2 * 3 * sum(sizes) + CAPACITY * sizes[1]  # and last frames of episodes
        assert bytes_on_disk(tmp_path) <= alive + written
    assert not (tmp_path / NAME).exists()
    read_checkpoint(tmp_path / "step_7")


def test_run_that_was_killed_leaves_files_that_the_next_one_removes(tmp_path):
    left = tmp_path / NAME / "coach-old"
    left.mkdir(parents=True)
    (left / "000000.bin").write_bytes(b"old")
    with Scratch().within(tmp_path):
        assert not left.exists()


@pytest.mark.parametrize("has_links", [True, False])
def test_loaded_files_stay_when_their_checkpoint_is_removed(tmp_path, has_links, monkeypatch):
    plain = built("frames", "cpu")
    first = Scratch()
    stream = world("frames")
    rows = rows_of("frames")
    with first.within(tmp_path):
        memory = built("frames", scratch=first)
        advance([memory, plain], stream, rows, 200)
        saved = read_and_write(memory, tmp_path / "step_1")
    other = tmp_path / "other"
    other.mkdir()
    second = Scratch()
    with second.within(other):
        forked = built("frames", scratch=second)
        forked.load_state_dict(saved.state)
        assert not files_in(other)  # nothing is made before it is needed
        if not has_links:

            def refused(*_):
                raise OSError(errno.EXDEV, "another file system")

            monkeypatch.setattr(os, "link", refused)
        else:
            shutil.rmtree(tmp_path / "step_1")  # its content is still mapped
        advance([forked, plain], stream, rows, 4)
        shutil.rmtree(tmp_path / "step_1", ignore_errors=True)
        again = built("frames", scratch=second)
        again.load_state_dict(read_and_write(forked, other / "step_2").state)
        advance([plain, again], stream, rows, 30)
        assert_same(plain, again)


@pytest.mark.parametrize("has_links", [True, False])
def test_files_written_before_a_run_has_its_folder_move_there(tmp_path, has_links, monkeypatch):
    plain = built("frames", "cpu")
    scratch = Scratch()
    stream = world("frames")
    memory = built("frames", scratch=scratch)
    advance([memory, plain], stream, rows_of("frames"), 100)
    before = folder_of(memory)
    run = tmp_path / "run"
    run.mkdir()
    assert tmp_path not in before.parents
    if not has_links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EXDEV, "another disk")))
    with scratch.within(run):
        advance([memory, plain], stream, rows_of("frames"), 1)
        saved = read_and_write(memory, run / "step_1")
        assert folder_of(memory).parent == run / NAME
        assert not files_in(before)
        advance([memory, plain], stream, rows_of("frames"), 100)
        assert_same(plain, memory)
    again = built("frames")
    again.load_state_dict(saved.state)


def folder_of(memory):
    """The folder of its files."""
    chunks = memory.store._rings["camera"]._frames._chunks
    (folder,) = {Path(chunk.path).parent for row in chunks for chunk in row}
    return folder


def test_damaged_file_in_a_checkpoint_is_an_error(tmp_path):
    memory = built("frames")
    advance([memory], world("frames"), rows_of("frames"), 200)
    write_checkpoint(tmp_path / "step_1", memory.state_dict(), {})
    entries = read_checkpoint(tmp_path / "step_1").state["store"]["frames"]["camera"]["frames"]
    path = entries.files[0].path
    content = path.read_bytes()
    path.unlink()  # the memory has another name for the same content
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(CheckpointError, match="does not match its checksum"):
        read_checkpoint(tmp_path / "step_1")


def full_disk(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_while_storing_stops_with_an_error_and_keeps_checkpoints(tmp_path, monkeypatch):
    memory = built("frames")
    stream = world("frames")
    rows = rows_of("frames")
    advance([memory], stream, rows, 100)
    write_checkpoint(tmp_path / "step_1", memory.state_dict(), {})
    monkeypatch.setattr(os, "posix_fallocate", full_disk)
    with pytest.raises(RunError, match=r"No space left on device.*free space there and resume"):
        advance([memory], stream, rows, 20)
    monkeypatch.undo()
    again = built("frames")
    again.load_state_dict(read_checkpoint(tmp_path / "step_1").state)
    advance([again], world("frames", seed=4), rows, 50)


def test_full_disk_while_a_checkpoint_is_written_leaves_the_memory_as_it_was(tmp_path, monkeypatch):
    memory = built("frames")
    plain = built("frames", "cpu")
    stream = world("frames")
    rows = rows_of("frames")
    advance([memory, plain], stream, rows, 100)
    monkeypatch.setattr("coach_rl.runs.packing.write_segment", full_disk)
    with pytest.raises(CheckpointError, match="No space left on device"):
        write_checkpoint(tmp_path / "step_1", memory.state_dict(), {})
    assert not list(tmp_path.glob("step_*"))
    monkeypatch.undo()
    advance([memory, plain], stream, rows, 50)
    assert_same(memory, plain)


def test_file_that_cannot_be_brought_to_the_disk_fails_the_checkpoint_alone(tmp_path, monkeypatch):
    memory = built("numbers")
    with monkeypatch.context() as patched:
        patched.setattr("coach_rl.extensions.disk_storage.chunks.sync", full_disk)
        advance([memory], world("numbers"), rows_of("numbers"), 8)
        with pytest.raises(OSError, match="No space left on device"):
            memory.state_dict()
    again = built("numbers")
    again.load_state_dict(read_and_write(memory, tmp_path / "step_1").state)
    assert_same(memory, again)


def test_disk_too_small_for_the_memory_is_refused(monkeypatch):
    memory = built("frames")
    monkeypatch.setattr(
        "coach_rl.extensions.disk_storage.disk_tables.shutil.disk_usage",
        lambda _: shutil._ntuple_diskusage(100, 90, 10),
    )
    with pytest.raises(RunError, match=r"takes .* and 10 .* free"):
        advance([memory], world("frames"), rows_of("frames"), 1)


def test_big_columns_on_the_disk_take_no_memory():
    on_host = built("stacks", "cpu").layout.size.host
    on_disk = built("stacks").layout.size.host
    pictures = 2 * 2 * 2 * 2 + 2 * 4 + 4  # two stacks, two speeds, an action
    assert on_host - on_disk == CAPACITY * pictures


def test_open_files_hold_at_most_what_the_parameters_allow():
    memory = built("stacks", rl.DiskStorage(open_megabytes=1), capacity=2_000_000)
    advance([memory], world("stacks"), rows_of("stacks"), 5)
    table = memory.store.table
    assert ROWS * table._file_entries * table._dtype.itemsize <= 1_000_000
    assert ROWS * (table._file_entries + 1) * table._dtype.itemsize > 1_000_000


def test_disk_storage_survives_the_manifest():
    parameters = ReplayMemoryParameters(capacity=10, storage=rl.DiskStorage(open_megabytes=8))
    assert decode(encode(parameters, "memory"), "memory") == parameters
    assert parameters.moved_to("cuda:0") == parameters
    assert parameters.keeping_nothing().storage == "none"


def test_temporary_folder_goes_with_the_memory():
    scratch = Scratch()
    memory = built("frames", scratch=scratch)
    advance([memory], world("frames"), rows_of("frames"), 10)
    folder = folder_of(memory)
    assert folder.is_dir()
    del memory, scratch
    gc.collect()
    assert not folder.exists()
