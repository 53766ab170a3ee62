"""Watching a run by its folder: its figures, its state, its end."""

import io
import json
import shutil
import socket
import threading
from contextlib import closing

import pytest
from rich.console import Console

from coach_rl.core.errors import ConfigurationError
from coach_rl.runs.lock import LOCK, locked
from coach_rl.studies import Standing, watch
from coach_rl.studies.job_run import run_job
from coach_rl.studies.live_table import LiveTable
from coach_rl.studies.watching import runs_to_watch, standing_of, watch_all
from coach_rl.telemetry import ConsoleSink
from tests.studies.walks import walk
from tests.waiting import wait_until


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


def test_a_run_that_is_done_is_shown_as_it_stands(runs, output):
    assert watch(runs[0], viewer(output), poll_seconds=0.0) == Standing("done")
    (line,) = output.getvalue().splitlines()
    assert "100 steps" in line
    assert "final evaluation" in line


def test_a_run_is_followed_until_it_ends(runs, output):
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
    assert ended == [Standing("done")]


def test_a_silent_run_says_what_its_last_record_announced(runs, output, monkeypatch):
    monkeypatch.setattr("coach_rl.studies.watching.BUSY_SECONDS", 0.0)
    log = runs[0] / "log.jsonl"
    begins = json.loads(log.read_text().splitlines()[0]) | {"kind": "phase", "phase": "test"}
    log.write_text(json.dumps(begins) + "\n")
    told = []

    class Told(ConsoleSink):
        def tell(self, activity, *, for_seconds=0.0):
            told.append(activity)

    sink = Told(console=Console(file=output, width=200))
    with locked(runs[0]):
        thread = threading.Thread(target=watch, args=(runs[0], sink), kwargs={"poll_seconds": 0.01})
        thread.start()
        wait_until(lambda: told)
    thread.join()
    assert set(told) == {"evaluating"}


def test_the_state_of_runs(runs):
    done, stopped = runs
    assert standing_of(done).state == "done"
    assert standing_of(stopped) == Standing("stopped")
    with locked(stopped):
        assert standing_of(stopped).state == "running"
        assert " on host " in standing_of(stopped).account
    gone = {"process": 2**22 - 1, "host": socket.gethostname(), "started": 1.0}
    (stopped / LOCK).write_text(json.dumps(gone))
    state = standing_of(stopped)
    assert state.state == "stopped"
    assert state.account.endswith("is gone without having ended the run")
    (stopped / "faults").mkdir()
    (stopped / "faults" / "step_45.txt").write_text("row 3 died:\nKeyError\n\ntraceback:\nlong\n")
    assert standing_of(stopped) == Standing("failed", "row 3 died: KeyError")


def test_a_folder_stands_for_what_runs_in_it_or_else_for_the_newest(runs, tmp_path):
    done, stopped = runs
    (stopped / "log.jsonl").touch()
    assert runs_to_watch([tmp_path]) == [stopped]
    with locked(done):
        assert runs_to_watch([tmp_path]) == [done]
        with locked(stopped):
            assert runs_to_watch([tmp_path]) == sorted(runs)
    assert runs_to_watch([done, stopped, done]) == [done, stopped]
    with pytest.raises(ConfigurationError, match="does not exist; name a run's folder"):
        runs_to_watch([tmp_path / "nowhere"])
    with pytest.raises(ConfigurationError, match="holds no runs"):
        runs_to_watch([done / "checkpoints"])


def test_several_runs_are_a_table_until_all_are_over(runs, output):
    with closing(LiveTable(Console(file=output, width=200), plain=True)) as table:
        assert watch_all(runs, table, poll_seconds=0.0) == ["done", "stopped"]
    first, second = output.getvalue().splitlines()
    assert first.split()[1] == "done"
    assert second.split()[1] == "stopped"


def test_what_is_no_run_cannot_be_watched(tmp_path, output):
    with pytest.raises(ConfigurationError, match="is not a run's folder"):
        watch(tmp_path, viewer(output))
