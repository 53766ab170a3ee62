"""Many runs as people watch them: a table on a terminal, lines elsewhere."""

import io
import json
import re
import shutil
import socket
import threading
from contextlib import closing
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from coach_rl.extensions.studies import RunStatus, live, watch
from coach_rl.extensions.studies.conduct import JobStatus
from coach_rl.extensions.studies.job import run_job
from coach_rl.extensions.studies.live import LiveTable, run_status, runs_to_watch, watch_all
from coach_rl.runs.lock import LOCK, locked
from coach_rl.telemetry import ConsoleSink
from tests.extensions.studies.walks import walk
from tests.waiting import wait_until

PROGRESS = (
    '{"kind": "progress", "phase": "train", "environment_steps": 25, "training_steps": 0, '
    '"episodes": 2, "wall_seconds": 5.0, "level": "", "agent": "", '
    '"scalars": {"time/steps_per_second": 1234.5}}\n'
)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The status of a run that is in the middle: 45 of 100 steps."""
    job = walk(tmp_path_factory.mktemp("runs"), signal_at=45)
    return JobStatus(job=job, state="running", folder=run_job(job).folder)


def screen(height=30):
    return Console(file=StringIO(), force_terminal=True, width=100, height=height, no_color=True)


def taken(console):
    """What has been written since the last time, without colours and cursor movements."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())
    console.file.seek(0)
    console.file.truncate()
    return text


def test_live_table_row_shows_progress(stopped):
    with (stopped.folder / "log.jsonl").open("a") as file:
        file.write(PROGRESS)
    console = screen()
    with closing(LiveTable(console, plain=False)) as table:
        table.show([stopped, replace(stopped, state="waiting", folder=None)])
        text = taken(console)
    assert "seed 3  running" in text
    assert "25" in text.split("running")[1]
    assert "1,234" in text
    assert "0:15" in text  # 5 seconds for a quarter
    assert "2 runs: 1 running, 1 waiting" in text


def test_live_table_long_keeps_running_and_failed(stopped):
    def numbered(seed, state, error=""):
        job = replace(stopped.job, task=replace(stopped.job.task, seed=seed))
        return JobStatus(job=job, state=state, folder=None, error=error)

    many = [numbered(seed, "waiting") for seed in range(100, 200)]
    many[50], many[70] = numbered(150, "running"), numbered(170, "failed", "no such level")
    console = screen(height=14)
    with closing(LiveTable(console, plain=False)) as table:
        table.show(many)
        text = taken(console)
    for part in ("seed 150", "seed 170", "seed 170: no such level", "98 waiting"):
        assert part in text
    assert text.count("\n") < 14
    assert "seed 199" in taken(console)  # the whole table stays


def test_live_table_plain_lines_on_change_and_interval(stopped, monkeypatch):
    console = Console(file=StringIO(), width=100)
    table = LiveTable(console, plain=False)
    for state in ("waiting", "running", "running", "done", "done"):
        table.show([replace(stopped, state=state)])
    lines = console.file.getvalue().splitlines()
    assert [line.split()[3] for line in lines] == ["running", "done"]
    assert "evaluation" in lines[1]
    monkeypatch.setattr(live, "PLAIN_SECONDS", 0.0)
    table.show([replace(stopped, state="running", losses=1)])
    table.show([replace(stopped, state="running", losses=1)])
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 4
    assert "running, 2. time" in lines[-1]


def test_watch_rewritten_log_is_read_again(stopped):
    log = stopped.folder / "log.jsonl"
    console = Console(file=StringIO(), width=100)
    table = LiveTable(console, plain=True)
    log.write_text(PROGRESS * 3)
    table.show([stopped])
    log.write_text(PROGRESS.replace("25", "50"))
    table.show([replace(stopped, state="stopped")])
    first, second = console.file.getvalue().splitlines()
    assert "25 steps  25%" in first
    assert "50 steps  50%" in second


def test_live_table_variant_in_name(stopped):
    console = Console(file=StringIO(), width=100)
    labelled = replace(stopped.job, labels={"variant": "fast"})
    LiveTable(console, plain=True).show([replace(stopped, job=labelled, state="done")])
    assert console.file.getvalue().startswith("fast seed 3")


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """A run that is done and one that was stopped."""
    root = tmp_path_factory.mktemp("runs")
    done = run_job(walk(root / "done")).folder
    return done, run_job(walk(root / "stopped", signal_at=45, seed=4)).folder


@pytest.fixture
def runs(originals, tmp_path):
    return [shutil.copytree(run, tmp_path / run.name) for run in originals]


@pytest.fixture
def output():
    return io.StringIO()


def viewer(output):
    return ConsoleSink(console=Console(file=output, width=200))


def test_watch_finished_run_is_shown(runs, output):
    assert watch(runs[0], viewer(output), poll_seconds=0.0) == RunStatus("done")
    (line,) = output.getvalue().splitlines()
    assert "100 steps" in line
    assert "final evaluation" in line


def test_watch_run_until_its_end(runs, output):
    log = runs[0] / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:2]))
    ended = []

    def watching():
        ended.append(watch(runs[0], viewer(output), poll_seconds=0.01))

    with locked(runs[0]):
        thread = threading.Thread(target=watching)
        thread.start()
        wait_until(output.getvalue)
        assert "final evaluation" not in output.getvalue()
        with log.open("a") as file:
            file.writelines(lines[2:])
        wait_until(lambda: "final evaluation" in output.getvalue())
        assert not ended
    thread.join()
    assert ended == [RunStatus("done")]


def test_watch_silent_run_shows_announced_activity(runs, output, monkeypatch):
    monkeypatch.setattr("coach_rl.extensions.studies.live.BUSY_SECONDS", 0.0)
    log = runs[0] / "log.jsonl"
    begins = json.loads(log.read_text().splitlines()[0]) | {"kind": "phase", "phase": "test"}
    log.write_text(json.dumps(begins) + "\n")
    told = []

    class Told(ConsoleSink):
        def show_activity(self, activity, *, for_seconds=0.0):
            told.append(activity)

    sink = Told(console=Console(file=output, width=200))
    with locked(runs[0]):
        thread = threading.Thread(target=watch, args=(runs[0], sink), kwargs={"poll_seconds": 0.01})
        thread.start()
        wait_until(lambda: told)
    thread.join()
    assert set(told) == {"evaluating"}


def test_run_status_states(runs):
    done, stopped = runs
    assert run_status(done).state == "done"
    assert run_status(stopped) == RunStatus("stopped")
    with locked(stopped):
        assert run_status(stopped).state == "running"
        assert " on host " in run_status(stopped).reason
    gone = {"process": 2**22 - 1, "host": socket.gethostname(), "started": 1.0}
    (stopped / LOCK).write_text(json.dumps(gone))
    state = run_status(stopped)
    assert state.state == "stopped"
    assert state.reason.endswith("has ended without ending the run")
    (stopped / "faults").mkdir()
    (stopped / "faults" / "step_45.txt").write_text("row 3 died:\nKeyError\n\ntraceback:\nlong\n")
    assert run_status(stopped) == RunStatus("failed", "row 3 died: KeyError")


def test_runs_to_watch_running_or_newest(runs, tmp_path):
    done, stopped = runs
    (stopped / "log.jsonl").touch()
    assert runs_to_watch([tmp_path]) == [stopped]
    with locked(done):
        assert runs_to_watch([tmp_path]) == [done]
        with locked(stopped):
            assert runs_to_watch([tmp_path]) == sorted(runs)
    assert runs_to_watch([done, stopped, done]) == [done, stopped]


def test_watch_all_until_all_ended(runs, output):
    with closing(LiveTable(Console(file=output, width=200), plain=True)) as table:
        assert watch_all(runs, table, poll_seconds=0.0) == ["done", "stopped"]
    first, second = output.getvalue().splitlines()
    assert first.split()[1] == "done"
    assert second.split()[1] == "stopped"
