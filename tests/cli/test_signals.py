"""Signals to a real run, in every phase: what it says, what it saves, and how soon it is gone."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.waiting import PATIENCE, wait_until

HERE = Path(__file__).parent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1000)]


class Run:
    """A `coach` in a process group of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder, self.log = folder, folder / f"said_{time.monotonic()}"
        code = "import sys; from coach_rl.cli.main import main; sys.exit(main())"
        with self.log.open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, *words, "--plain", "-ntb"],
                cwd=folder,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)]),
                    "PYTHONUNBUFFERED": "1",
                },
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def logged(self) -> str:
        return "".join(path.read_text() for path in self.folder.rglob("log.jsonl"))

    def wait_for(self, text: str) -> None:
        """Until it has said something, or logged it."""
        wait_until(
            lambda: text in self.said + self.logged, is_possible=lambda: self.process.poll() is None
        )

    def ends(self) -> int:
        """Its exit code; fails where it takes too long, or leaves a process behind."""
        children = self._group()
        code = self.process.wait(PATIENCE)
        _, alive = psutil.wait_procs(children, PATIENCE)
        assert not alive, "workers outlived the run"
        return code

    def kill(self, number: int, *, group: bool = False) -> None:
        (os.killpg if group else os.kill)(self.process.pid, number)

    def _group(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []


@pytest.fixture
def runs(tmp_path):
    """Runs to be gone in the end, whatever happens."""
    started: list[Run] = []
    yield started
    for run in started:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()


def start(runs: list[Run], folder: Path, changes: str = "") -> Run:
    runs.append(Run(folder, "-p", str(HERE / "slow_preset.py"), "-cp", changes))
    return runs[-1]


PHASES = [
    ("heatup=1000", '"phase": "heatup"'),
    ("", '"kind": "train"'),
    ("interval=8", '"phase": "test"'),
    ("steps=8; schedule.evaluation_interval=None", '"phase": "test"'),
]


@pytest.mark.parametrize(("changes", "begun"), PHASES, ids=["heatup", "training", "test", "final"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2])
def test_a_signal_to_the_whole_group_saves_and_ends_a_run_in_any_phase(
    runs, tmp_path, number, changes, begun
):
    run = start(runs, tmp_path, changes)
    run.wait_for(begun)
    run.kill(number, group=True)
    assert run.ends() == 128 + number
    said = re.search(
        r"stopped by SIG\w+ after (\d+) environment steps; resume with: \S+ -crd (\S+)", run.said
    )
    assert said is not None, run.said
    assert (tmp_path / said[2] / "checkpoints" / f"step_{said[1]}").is_dir()


@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
def test_a_run_that_compiles_is_left_at_once_and_begins_anew(runs, tmp_path):
    run = start(runs, tmp_path, "mode=compiled")
    time.sleep(3)
    run.wait_for('"phase": "train"')
    time.sleep(1.5)  # a rollout takes less
    run.kill(signal.SIGINT, group=True)
    assert run.ends() == 130
    assert "interrupted. The run had done 8 environment steps; it had written no" in run.said
    (folder,) = (tmp_path / "experiments" / "slow_preset").iterdir()
    assert "resume with" not in run.said
    runs.append(again := Run(tmp_path, "-crd", str(folder)))
    again.wait_for("running:")


def test_the_second_signal_leaves_at_once_and_says_how_to_go_on(runs, tmp_path):
    run = start(runs, tmp_path)
    run.wait_for('"kind": "train"')
    run.kill(signal.SIGINT, group=True)
    time.sleep(0.01)
    run.kill(signal.SIGTERM, group=True)
    code = run.ends()
    assert code in (130, 143)  # by the first one where the step was over before the second came
    is_saved = bool(list(tmp_path.rglob("checkpoints/step_*")))
    assert (f"resume with: {Path(sys.executable).with_name('coach')} -crd" in run.said) == is_saved


def test_sigusr1_saves_and_the_run_goes_on(runs, tmp_path):
    run = start(runs, tmp_path)
    run.wait_for('"kind": "train"')
    run.kill(signal.SIGUSR1, group=True)
    run.wait_for('"kind": "checkpoint"')
    assert run.said.count("writing a checkpoint after this step") == 1
    wait_until(lambda: list(tmp_path.rglob("checkpoints/last")))
    (checkpoint,) = tmp_path.rglob("checkpoints/step_*")
    saved, logged = int(checkpoint.name[5:]), re.compile(r'"environment_steps": (\d+)')
    wait_until(lambda: max(map(int, logged.findall(run.logged))) > saved)
    run.kill(signal.SIGTERM)
    assert run.ends() == 143
    assert int(re.findall(r"stopped by SIG\w+ after (\d+)", run.said)[0]) > saved


def test_workers_do_not_outlive_a_killed_run(runs, tmp_path):
    run = start(runs, tmp_path)
    run.wait_for('"kind": "train"')
    run.kill(signal.SIGKILL)
    assert run.ends() == -signal.SIGKILL
