"""The files a run writes: JSONL, CSV and TensorBoard."""

import csv
import json
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from coach_rl.core import LogRecord
from coach_rl.core.clock import Phase
from coach_rl.telemetry import CsvSink, JsonlReader, JsonlSink, TensorBoardSink
from coach_rl.telemetry.log_files import ImageSink


def record(kind, steps=0, **fields):
    return LogRecord(
        **{
            "kind": kind,
            "phase": Phase.TRAIN,
            "environment_steps": steps,
            "training_steps": 7,
            "episodes": 3,
            "wall_seconds": 1.5,
            **fields,
        }
    )


def learned(steps, level="main", agent="ppo", **scalars):
    named = {f"train/{name}": value for name, value in scalars.items()}
    return record("train", steps, level=level, agent=agent, scalars=named)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# --- JSONL


def test_jsonl_line_has_all_fields(tmp_path):
    sink = JsonlSink(tmp_path / "deep" / "log.jsonl")
    sink.write(
        record(
            "evaluation",
            2048,
            phase=Phase.TEST,
            scalars={"evaluation/reward_mean": 1 / 3},
            arrays={"episode/reward": np.array([1.0, 0.1]), "episode/length": np.array([2, 5])},
        )
    )
    sink.write(learned(4096, policy_loss=np.float64(0.1)))
    first, second = (
        json.loads(line) for line in (tmp_path / "deep" / "log.jsonl").read_text().splitlines()
    )
    sink.close()
    assert first == {
        "kind": "evaluation",
        "phase": "test",
        "environment_steps": 2048,
        "training_steps": 7,
        "episodes": 3,
        "wall_seconds": 1.5,
        "level": "",
        "agent": "",
        "scalars": {"evaluation/reward_mean": 1 / 3},
        "arrays": {"episode/reward": [1.0, 0.1], "episode/length": [2, 5]},
    }
    assert (second["level"], second["agent"]) == ("main", "ppo")
    assert second["scalars"] == {"train/policy_loss": 0.1}


def test_jsonl_non_finite_numbers_are_null(tmp_path):
    sink = JsonlSink(tmp_path / "log.jsonl")
    arrays = {"episode/reward": np.array([1.0, np.nan])}
    scalars = {"a/nan": math.nan, "a/inf": math.inf, "a/low": -math.inf, "a/one": 1.0}
    sink.write(record("evaluation", scalars=scalars, arrays=arrays))
    sink.close()

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    line = json.loads((tmp_path / "log.jsonl").read_text(), parse_constant=refuse)
    assert line["scalars"] == {"a/nan": None, "a/inf": None, "a/low": None, "a/one": 1.0}
    assert line["arrays"] == {"episode/reward": [1.0, None]}


def test_jsonl_record_that_is_not_for_the_log_is_left_out(tmp_path):
    sink = JsonlSink(tmp_path / "log.jsonl")
    sink.write(record("large", is_in_log=False, arrays={"a/values": np.zeros((9, 3))}))
    sink.close()
    assert (tmp_path / "log.jsonl").read_text() == ""


def test_jsonl_numpy_numbers_are_written(tmp_path):
    sink = JsonlSink(tmp_path / "log.jsonl")
    sink.write(learned(1, a=np.float32(0.5), b=np.int64(3), c=np.bool_(True)))
    sink.close()
    line = json.loads((tmp_path / "log.jsonl").read_text())
    assert line["scalars"] == {"train/a": 0.5, "train/b": 3.0, "train/c": 1.0}


def test_log_files_killed_process_keeps_lines(tmp_path):
    program = f"""
import os, signal
from pathlib import Path
from coach_rl.core.clock import Phase
from coach_rl.telemetry.log_files import CsvSink
from coach_rl.telemetry.log_files import JsonlSink
from coach_rl.core.log_records import LogRecord
folder = Path({str(tmp_path)!r})
sinks = [JsonlSink(folder / "log.jsonl"), CsvSink(folder)]
for steps in range(5):
    for sink in sinks:
        sink.write(LogRecord(kind="episode", phase=Phase.TRAIN, environment_steps=steps,
            training_steps=0, episodes=steps, wall_seconds=0.0, scalars={{"episode/reward": 0.5}}))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, env=os.environ)
    assert ended.returncode == -signal.SIGKILL
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["environment_steps"] for line in lines] == [0, 1, 2, 3, 4]
    assert len(rows_of(tmp_path / "episodes.csv")) == 5


def test_jsonl_existing_file_is_continued(tmp_path):
    for steps in (1, 2):
        sink = JsonlSink(tmp_path / "log.jsonl")
        sink.write(record("phase", steps))
        sink.close()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["environment_steps"] for line in lines] == [1, 2]


# --- CSV


def test_csv_level_and_agent_have_tables(tmp_path):
    sink = CsvSink(tmp_path)
    sink.write(record("phase"))
    sink.write(record("episode", 5, scalars={"episode/reward": 1.0}))
    sink.write(record("evaluation", 6, scalars={"evaluation/reward_mean": 2.0}))
    sink.write(record("progress", 7, scalars={"time/steps_per_second": 3.0}))
    sink.write(record("checkpoint", 8, scalars={"checkpoint/best": 1.0}))
    sink.write(learned(9, level="top", agent="ddpg", value_loss=4.0))
    sink.write(learned(9, level="low", agent="ddpg", value_loss=5.0))
    sink.close()
    assert {path.name for path in tmp_path.iterdir()} == {
        "episodes.csv",
        "evaluations.csv",
        "progress.csv",
        "top.ddpg.csv",
        "low.ddpg.csv",
    }
    assert (tmp_path / "low.ddpg.csv").read_text() == (
        "environment_steps,training_steps,episodes,wall_seconds,train/value_loss\n9,7,3,1.5,5.0\n"
    )


def test_csv_numbers_read_back_exactly(tmp_path):
    numbers = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
    numbers += [np.float64(2 / 3), np.float64(1e-300)]
    sink = CsvSink(tmp_path)
    for number in numbers:
        sink.write(learned(2**53, x=number))
    sink.close()
    rows = rows_of(tmp_path / "main.ppo.csv")
    read = np.array([float(row["train/x"]) for row in rows])
    assert read.tobytes() == np.array(numbers).tobytes()
    assert {int(row["environment_steps"]) for row in rows} == {2**53}


def test_csv_new_scalar_adds_column(tmp_path):
    sink = CsvSink(tmp_path)
    sink.write(learned(1, a=1.0))
    sink.write(learned(2, a=2.0, b=3.0))
    sink.write(learned(3, b=4.0))
    rows = rows_of(tmp_path / "main.ppo.csv")
    sink.close()
    assert [(row["train/a"], row["train/b"]) for row in rows] == [
        ("1.0", ""),
        ("2.0", "3.0"),
        ("", "4.0"),
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["main.ppo.csv"]


def test_csv_kill_while_widening_loses_nothing(tmp_path, monkeypatch):
    sink = CsvSink(tmp_path)
    sink.write(learned(1, a=1.0))
    before = (tmp_path / "main.ppo.csv").read_bytes()

    def killed(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        sink.write(learned(2, b=1.0))
    sink.close()
    assert (tmp_path / "main.ppo.csv").read_bytes() == before
    monkeypatch.undo()
    again = CsvSink(tmp_path)
    again.write(learned(2, b=1.0))
    again.close()
    assert [row["train/b"] for row in rows_of(tmp_path / "main.ppo.csv")] == ["", "1.0"]


def test_csv_existing_table_keeps_columns(tmp_path):
    for steps, scalars in ((1, {"a": 1.0, "b": 2.0}), (2, {"b": 3.0, "a": 4.0})):
        sink = CsvSink(tmp_path)
        sink.write(learned(steps, **scalars))
        sink.close()
    lines = (tmp_path / "main.ppo.csv").read_text().splitlines()
    assert lines[0].endswith("train/a,train/b")
    assert [line.split(",")[-2:] for line in lines[1:]] == [["1.0", "2.0"], ["4.0", "3.0"]]


def test_csv_names_of_scalars_are_no_formulas_and_printable(tmp_path):
    for _ in range(2):  # a file that is continued has the same columns
        sink = CsvSink(tmp_path)
        sink.write(replace(learned(1, agent=""), scalars={"=1+1": 2.0, "walk\x1b\n": 3.0}))
        sink.close()
    (file,) = tmp_path.glob("*.csv")
    header, *rows = file.read_text().splitlines()
    assert header.endswith(",'=1+1,walk\\x1b\\n")
    assert len(rows) == 2


def test_csv_names_invalid_in_files_are_quoted(tmp_path):
    sink = CsvSink(tmp_path / "run")
    sink.write(learned(1, level="../maze/top", a=1.0))
    sink.close()
    assert [path.name for path in tmp_path.rglob("*.csv")] == ["..%2Fmaze%2Ftop.ppo.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


# --- TensorBoard


def curve(folder, tag):
    events = EventAccumulator(str(folder))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(tag)]


def test_tensorboard_scalars_by_environment_steps(tmp_path):
    sink = TensorBoardSink(tmp_path)
    sink.write(record("phase", 0))
    for steps in (10, 20):
        sink.write(record("episode", steps, scalars={"episode/reward": steps / 4, "b/c": 1.0}))
        sink.write(learned(steps, level="top", policy_loss=-0.5))
    sink.close()
    assert curve(tmp_path, "episode/reward") == [(10, 2.5), (20, 5.0)]
    assert curve(tmp_path, "b/c") == [(10, 1.0), (20, 1.0)]
    assert curve(tmp_path, "top/ppo/train/policy_loss") == [(10, -0.5), (20, -0.5)]


def test_tensorboard_resumed_run_replaces_values(tmp_path):
    def part(steps, value, resumed_at=None):
        sink = TensorBoardSink(tmp_path, resumed_at=resumed_at)
        sink.write(record("phase", steps[0]))
        for step in steps:
            sink.write(record("episode", step, scalars={"episode/reward": value}))
        sink.close()

    part([10, 20, 30, 40], 1.0)
    part([30, 50], 2.0, resumed_at=20)
    assert curve(tmp_path, "episode/reward") == [(10, 1.0), (20, 1.0), (30, 2.0), (50, 2.0)]


def test_tensorboard_parts_are_ordered_without_clock(tmp_path, monkeypatch):
    """Resumed at once by a process with a smaller number, then on a host whose clock is behind."""
    for steps, pid, now in ((10, 999, 5000.4), (20, 1000, 5000.4), (30, 1, 4000.0)):
        monkeypatch.setattr("os.getpid", lambda pid=pid: pid)
        monkeypatch.setattr("time.time", lambda now=now: now)
        sink = TensorBoardSink(tmp_path)
        sink.write(record("episode", steps, scalars={"episode/reward": 1.0}))
        sink.close()
    assert curve(tmp_path, "episode/reward") == [(10, 1.0), (20, 1.0), (30, 1.0)]


def test_tensorboard_values_at_resumed_step_are_kept(tmp_path):
    for value, resumed_at in ((1.0, None), (2.0, 20)):
        sink = TensorBoardSink(tmp_path, resumed_at=resumed_at)
        sink.write(record("episode", 20, scalars={f"part/{value:.0f}": value}))
        sink.close()
    assert curve(tmp_path, "part/1") == [(20, 1.0)]
    assert curve(tmp_path, "part/2") == [(20, 2.0)]


def test_tensorboard_checkpoint_flushes(tmp_path):
    sink = TensorBoardSink(tmp_path)
    sink.write(record("episode", 10, scalars={"episode/reward": 2.5}))
    sink.write(record("checkpoint", 10, scalars={"checkpoint/best": 1.0}))
    read = curve(tmp_path, "episode/reward")  # before the sink is closed
    sink.close()
    assert read == [(10, 2.5)]


def test_tensorboard_close_without_records(tmp_path):
    TensorBoardSink(tmp_path / "tensorboard").close()
    assert list((tmp_path / "tensorboard").iterdir()) == []


RECORD = record(
    "episode",
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


def test_jsonl_reader_record_equals_written(log):
    sink = JsonlSink(log)
    sink.write(replace(RECORD, arrays={"episode/reward": np.zeros(3)}))
    sink.close()
    (read,) = JsonlReader(log).read()
    assert np.isnan(read.scalars["episode/length"])
    assert replace(read, scalars=RECORD.scalars) == RECORD
    assert read.scalars["episode/reward"] == 0.1


def test_jsonl_reader_reads_new_records_only(log):
    reader = JsonlReader(log)
    assert reader.read() == []
    write(log, 1, 2)
    assert steps(reader.read()) == [1, 2]
    assert reader.is_from_start
    write(log, 3)
    assert steps(reader.read()) == [3]
    assert not reader.is_from_start
    assert reader.read() == []


def test_jsonl_reader_partial_line_is_read_when_complete(log):
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
def test_jsonl_reader_truncated_log_is_reread(log, again):
    write(log, *range(1, 6))
    reader = JsonlReader(log)
    reader.read()
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:2]))
    write(log, *again, seconds=2.5)
    assert steps(reader.read()) == ([1, 2, *again])
    assert reader.is_from_start
    write(log, 10)
    assert steps(reader.read()) == [10]


def test_jsonl_reader_other_kinds_and_damaged_lines_are_skipped(log):
    write(log, 1)
    with log.open("a") as file:
        file.write('{"kind": "episode", torn\n[1]\n')
    sink = JsonlSink(log)
    sink.write(replace(RECORD, kind="progress", environment_steps=2))
    sink.close()
    assert steps(JsonlReader(log).read()) == [1, 2]
    assert steps(JsonlReader(log, kinds=("progress",)).read()) == [2]


def test_image_sink_writes_a_file_a_picture(tmp_path):
    picture = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    note = record("note", 40, level="top", images={"goals/a map": picture})
    sink = ImageSink(tmp_path / "images")
    sink.write(note)
    sink.close()
    (file,) = (tmp_path / "images").iterdir()
    assert file.name == "step_40_top_goals_a_map.png"
    np.testing.assert_array_equal(np.asarray(Image.open(file)), picture)
    long = {"goals/" + "é" * 300 + end: picture for end in "ab"}  # stay apart
    sink.write(replace(note, images=long))
    assert len([*(tmp_path / "images").iterdir()]) == 3
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        ImageSink(tmp_path / "linked").write(note)
