"""The log of a run, read while it is written."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.core.clock import Phase
from coach_rl.telemetry import JsonlReader, JsonlSink, LogRecord

RECORD = LogRecord(
    kind="episode",
    phase=Phase.TRAIN,
    environment_steps=0,
    training_steps=3,
    episodes=2,
    wall_seconds=1.5,
    level="low",
    agent="ddpg",
    scalars={"episode/reward": 0.1, "episode/length": float("nan")},
    text="said",
)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.jsonl"


def write(log, *steps, seconds=1.5):
    sink = JsonlSink(log)
    for count in steps:
        sink.write(replace(RECORD, environment_steps=count, wall_seconds=seconds))
    sink.close()


def steps(records):
    return [record.environment_steps for record in records]


def test_a_record_is_read_as_it_was_written_without_its_arrays(log):
    sink = JsonlSink(log)
    sink.write(replace(RECORD, arrays={"episode/reward": np.zeros(3)}))
    sink.close()
    (read,) = JsonlReader(log).read()
    assert np.isnan(read.scalars["episode/length"])
    assert replace(read, scalars=RECORD.scalars) == RECORD
    assert read.scalars["episode/reward"] == 0.1


def test_only_what_is_new_is_read(log):
    reader = JsonlReader(log)
    assert reader.read() == []
    write(log, 1, 2)
    assert steps(reader.read()) == [1, 2]
    assert reader.is_from_start
    write(log, 3)
    assert steps(reader.read()) == [3]
    assert not reader.is_from_start
    assert reader.read() == []


def test_a_line_that_is_being_written_is_read_once_it_is_whole(log):
    write(log, 1)
    line = log.read_bytes()
    reader = JsonlReader(log)
    with log.open("ab") as file:
        file.write(line[:40])
        file.flush()
        assert steps(reader.read()) == [1]
        file.write(line[40:])
        file.flush()
        assert steps(reader.read()) == [1]


@pytest.mark.parametrize("again", [[], [3], [3, 4, 5, 6, 7, 8, 9]])
def test_a_log_that_a_resumed_run_has_cut_is_read_anew(log, again):
    write(log, *range(1, 6))
    reader = JsonlReader(log)
    reader.read()
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    write(log, *again, seconds=2.5)
    assert steps(reader.read()) == ([1, 2, *again])
    assert reader.is_from_start
    write(log, 10)
    assert steps(reader.read()) == [10]


def test_kinds_that_nobody_asks_for_and_damaged_lines_are_left_out(log):
    write(log, 1)
    with log.open("a") as file:
        file.write('{"kind": "episode", torn\n[1]\n')
    sink = JsonlSink(log)
    sink.write(replace(RECORD, kind="progress", environment_steps=2))
    sink.close()
    assert steps(JsonlReader(log).read()) == [1, 2]
    assert steps(JsonlReader(log, kinds=("progress",)).read()) == [2]
