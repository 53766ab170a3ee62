"""Checkpoints share the entries of memories: each writes what is new, any can be resumed."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.core.state import Appended, State
from coach_rl.runs import packing
from coach_rl.runs.checkpoint import (
    find_checkpoint,
    list_checkpoints,
    point,
    read_checkpoint,
    remove_checkpoint,
    steps_of,
    write_checkpoint,
)
from coach_rl.runs.packing import NOTHING_STORED, Stored

DTYPE = np.dtype([("observation", np.float32, (3,)), ("reward", np.float64)])


class Rings:
    """A memory of a user's own: the newest numbers of each row, in a ring."""

    def __init__(self, num_rows: int, capacity: int) -> None:
        self.capacity = capacity
        self.content = np.zeros((num_rows, capacity), DTYPE)
        self.counts = np.zeros(num_rows, np.int64)
        self.generation = self.life = 0

    def add(self, row: int, count: int) -> None:
        for _ in range(count):
            number = self.counts[row]
            place = self.content[row, number % self.capacity : number % self.capacity + 1]
            place["observation"] = row, number, self.generation
            place["reward"] = self.life + number / 7
            self.counts[row] += 1

    def clear(self) -> None:
        self.counts[:] = 0
        self.generation += 1

    def state_dict(self) -> State:
        appended = Appended(
            dtype=DTYPE,
            first=np.maximum(0, self.counts - self.capacity),
            ends=self.counts.copy(),
            capacity=self.content.size,
            read=self._read,
            generation=self.generation,
        )
        return {"entries": appended}

    def load_state_dict(self, state: State) -> None:
        entries = state["entries"]
        for row, begin, columns in entries.parts():
            places = (begin + np.arange(len(columns["reward"]))) % self.capacity
            for name in DTYPE.names or ():
                self.content[name][row, places] = columns[name]
        self.counts[:], self.generation = entries.ends, entries.generation

    def kept(self) -> list[bytes]:
        """The entries of each row, oldest first."""
        kept = []
        for row, count in enumerate(self.counts.tolist()):
            numbers = np.arange(max(0, count - self.capacity), count)
            kept.append(self.content[row, numbers % self.capacity].tobytes())
        return kept

    def _read(self, row: int, begin: int, end: int) -> dict[str, Any]:
        entries = self.content[row, np.arange(begin, end) % self.capacity]
        return {name: entries[name] for name in DTYPE.names or ()}


def filled(num_rows: int = 2, capacity: int = 50, count: int = 40) -> Rings:
    rings = Rings(num_rows, capacity)
    for row in range(num_rows):
        rings.add(row, count)
    return rings


def loaded(path: Path, like: Rings) -> Rings:
    fresh = Rings(len(like.counts), like.capacity)
    fresh.load_state_dict(read_checkpoint(path).state)
    return fresh


def save(path: Path, rings: Rings, earlier: Stored = NOTHING_STORED) -> Stored:
    return write_checkpoint(path, rings.state_dict(), {}, earlier=earlier)


def entries_in(path: Path) -> dict[str, int]:
    """Entries by segment."""
    return {
        file.name: file.stat().st_size // DTYPE.itemsize for file in sorted(path.glob("rows_*"))
    }


def test_write_checkpoint_writes_new_entries_only(tmp_path):
    rings = filled(count=40)
    stored = save(tmp_path / "step_1", rings)
    rings.add(0, 5)
    stored = save(tmp_path / "step_2", rings, stored)
    assert entries_in(tmp_path / "step_1") == {"rows_000001.bin": 80}
    assert entries_in(tmp_path / "step_2") == {"rows_000001.bin": 80, "rows_000002.bin": 5}
    both = [tmp_path / step / "rows_000001.bin" for step in ("step_1", "step_2")]
    assert both[0].samefile(both[1])
    save(tmp_path / "step_3", rings, stored)  # nothing is new
    assert entries_in(tmp_path / "step_3") == entries_in(tmp_path / "step_2")


def test_write_checkpoint_small_segments_are_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MERGED_BYTES", 100 * DTYPE.itemsize)
    rings, stored = Rings(1, 10_000), NOTHING_STORED
    written = 0
    for step in range(200):
        rings.add(0, 10)
        path = tmp_path / f"step_{step}"
        stored = save(path, rings, stored)
        new = [file for file in path.glob("rows_*") if file.stat().st_nlink == 1]
        written += sum(file.stat().st_size for file in new) // DTYPE.itemsize
    assert sum(entries_in(path).values()) == 2000
    assert len(entries_in(path)) < 2000 / 100 + 8
    assert written < 5 * 2000
    assert loaded(path, rings).kept() == rings.kept()


def test_remove_checkpoint_segment_is_removed_with_its_last_user(tmp_path):
    rings = filled(capacity=50, count=40)
    stored = save(tmp_path / "step_1", rings)
    rings.add(0, 60)
    rings.add(1, 60)  # the rings have gone round
    save(tmp_path / "step_2", rings, stored)
    assert entries_in(tmp_path / "step_2") == {"rows_000002.bin": 100}
    assert loaded(tmp_path / "step_1", rings).kept() == filled(capacity=50, count=40).kept()
    remove_checkpoint(tmp_path / "step_1")
    assert loaded(tmp_path / "step_2", rings).kept() == rings.kept()
    assert sorted(path.name for path in tmp_path.rglob("rows_*")) == ["rows_000002.bin"]


def test_write_checkpoint_slow_row_keeps_no_segments_of_others(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "MERGED_BYTES", 0)
    rings, stored = filled(capacity=50, count=1), NOTHING_STORED
    for step in range(40):
        rings.add(0, 1)  # an entry of it is in every segment
        rings.add(1, 30)
        stored = save(tmp_path / f"step_{step}", rings, stored)
        assert sum(entries_in(tmp_path / f"step_{step}").values()) <= 2 * 100 + 31
    assert loaded(tmp_path / "step_39", rings).kept() == rings.kept()


@pytest.mark.parametrize("lost", ["missing", "shorter"])
def test_write_checkpoint_after_a_lost_segment_shares_nothing(tmp_path, lost):
    rings = filled()
    stored = save(tmp_path / "step_1", rings)
    segment = tmp_path / "step_1" / "rows_000001.bin"
    segment.unlink() if lost == "missing" else segment.write_bytes(b"too short")
    rings.add(0, 1)
    save(tmp_path / "step_2", rings, stored)
    assert loaded(tmp_path / "step_2", rings).kept() == rings.kept()


def test_write_checkpoint_without_hard_links_copies(tmp_path, monkeypatch):
    def refused(*arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    rings = filled()
    stored = save(tmp_path / "step_1", rings)
    rings.add(0, 1)
    save(tmp_path / "step_2", rings, stored)
    remove_checkpoint(tmp_path / "step_1")
    assert loaded(tmp_path / "step_2", rings).kept() == rings.kept()


actions = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 2), st.integers(1, 30)),
    st.tuples(st.sampled_from(["save", "save", "remove", "resume", "clear"]), st.integers(0, 9)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(actions, max_size=40), st.sampled_from([1, 64_000_000]))
def test_read_checkpoint_any_is_whole_after_any_plan(tmp_path_factory, plan, merged):
    folder = tmp_path_factory.mktemp("any")
    rings, stored, expected = Rings(3, 20), NOTHING_STORED, dict[Path, list[bytes]]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(packing, "MERGED_BYTES", merged)
        for number, (action, *values) in enumerate(plan):
            chosen = [*expected][values[0] % len(expected)] if expected else None
            if action == "add":
                rings.add(*values)
            elif action == "save":
                path = folder / f"step_{number}"
                stored = save(path, rings, stored)
                expected[path] = rings.kept()
            elif action == "clear":
                rings.clear()
            elif chosen is not None and action == "remove":
                remove_checkpoint(chosen)
                del expected[chosen]
            elif chosen is not None:
                checkpoint = read_checkpoint(chosen)
                rings.load_state_dict(checkpoint.state)
                stored = checkpoint.stored
                rings.life += 1  # what comes now differs from what came then
    for path, kept in expected.items():
        assert loaded(path, rings).kept() == kept


OPERATIONS = ("open", "os.mkdir", "os.link", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")


def dies_at(operation: int, folder: Path, work: Callable[[], None]) -> bool:
    """Do work in a process that is killed at a file operation; True if it got that far."""
    child = os.fork()
    if child == 0:
        remaining = operation

        def count() -> None:
            nonlocal remaining
            remaining -= 1
            if remaining < 0:
                os._exit(9)

        def audited(event: str, arguments: tuple[Any, ...]) -> None:
            if event in OPERATIONS and str(folder) in str(arguments):
                count()

        real_sync = os.fsync

        def sync(descriptor: int) -> None:
            count()
            real_sync(descriptor)

        os.fsync = sync
        sys.addaudithook(audited)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def rings_at(step: int) -> Rings:
    rings = filled(capacity=50, count=10)
    for _ in range(step):
        rings.add(0, 12)
        rings.add(1, 9)
    return rings


def go_on(folder: Path) -> None:
    """From the last checkpoint to the next one, as a run does; the first one stays."""
    last = read_checkpoint(find_checkpoint(folder))
    step = steps_of(last.path)
    for later in [path for path in list_checkpoints(folder) if steps_of(path) > step]:
        remove_checkpoint(later)
    save(folder / f"step_{step + 1}", rings_at(step + 1), last.stored)
    point(folder, "last", f"step_{step + 1}")
    for old in list_checkpoints(folder)[1:-1]:
        remove_checkpoint(old)


def assert_whole(checkpoints: list[Path]) -> None:
    for path in checkpoints:
        assert loaded(path, rings_at(0)).kept() == rings_at(steps_of(path)).kept()


def test_kill_at_any_file_operation_leaves_whole_checkpoints(tmp_path):
    start = tmp_path / "start"
    stored = NOTHING_STORED
    for step in range(3):
        stored = save(start / f"step_{step}", rings_at(step), stored)
    point(start, "last", "step_2")
    operation, died = 0, True
    while died:
        folder = tmp_path / f"killed_{operation}"
        shutil.copytree(start, folder)
        died = dies_at(operation, folder, partial(go_on, folder))
        assert_whole(list_checkpoints(folder))
        while find_checkpoint(folder).name != "step_4":
            go_on(folder)
        assert_whole(list_checkpoints(folder))
        assert sorted(path.name for path in folder.iterdir()) == ["last", "step_0", "step_4"]
        operation += 1
    assert operation > 30


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_read_checkpoint_without_memories_needs_no_segments(tmp_path):
    path = tmp_path / "step_1"
    write_checkpoint(path, {"weights": np.ones(2), **filled().state_dict()}, {})
    (path / "rows_000001.bin").unlink()
    checkpoint = read_checkpoint(path, memories=False)
    assert checkpoint.state["weights"].tolist() == [1, 1]
    assert checkpoint.state["entries"] is None
    assert not checkpoint.has_memories


def test_write_checkpoint_memories_can_be_left_out(tmp_path):
    path = tmp_path / "step_1"
    rings = filled()
    stored = write_checkpoint(path, {"n": 1, **rings.state_dict()}, {}, memories=False)
    checkpoint = read_checkpoint(path)
    assert checkpoint.state == {"n": 1, "entries": None}
    assert not checkpoint.has_memories
    assert not entries_in(path)
    save(tmp_path / "step_2", rings, stored)
    assert read_checkpoint(tmp_path / "step_2").has_memories
    assert loaded(tmp_path / "step_2", rings).kept() == rings.kept()
