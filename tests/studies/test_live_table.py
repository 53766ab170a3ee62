"""Many runs as people watch them: a table on a terminal, lines elsewhere."""

import re
from contextlib import closing
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from coach_rl.studies import live_table
from coach_rl.studies.conduct import JobStatus
from coach_rl.studies.job_run import run_job
from coach_rl.studies.live_table import LiveTable
from tests.studies.walks import walk

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


def test_a_row_shows_state_progress_speed_score_and_time_left(stopped):
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


def test_a_table_longer_than_the_terminal_keeps_what_runs_and_what_failed(stopped):
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


def test_lines_tell_each_change_once_and_running_runs_now_and_then(stopped, monkeypatch):
    console = Console(file=StringIO(), width=100)
    table = LiveTable(console, plain=False)
    for state in ("waiting", "running", "running", "done", "done"):
        table.show([replace(stopped, state=state)])
    lines = console.file.getvalue().splitlines()
    assert [line.split()[3] for line in lines] == ["running", "done"]
    assert "evaluation" in lines[1]
    monkeypatch.setattr(live_table, "PLAIN_SECONDS", 0.0)
    table.show([replace(stopped, state="running", losses=1)])
    table.show([replace(stopped, state="running", losses=1)])
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 4
    assert "running, 2. time" in lines[-1]


def test_a_log_that_is_cut_and_written_again_is_read_again(stopped):
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


def test_a_variant_is_part_of_the_name(stopped):
    console = Console(file=StringIO(), width=100)
    labelled = replace(stopped.job, labels={"variant": "fast"})
    LiveTable(console, plain=True).show([replace(stopped, job=labelled, state="done")])
    assert console.file.getvalue().startswith("fast seed 3")
