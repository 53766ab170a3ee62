"""Workers: calls, errors and warnings; their end and that of their parent; signals."""

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from contextlib import closing
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path

import psutil
import pytest
import torch

import coach_rl as rl
from coach_rl.core.errors import CheckpointError, EnvironmentFault, RunError, SpaceError
from coach_rl.processes import WorkerLost, WorkerProcess
from coach_rl.processes.worker_messages import WorkerPayload
from coach_rl.sessions.stop_requests import SAVES, STOPS
from tests.waiting import PATIENCE, wait_until

STARTS = ["fork", pytest.param("spawn", marks=pytest.mark.slow), "forkserver"]
ERRORS = {
    each.__name__: each
    for each in (CheckpointError, EnvironmentFault, rl.ParameterError, SpaceError, ValueError)
}


class Counter:
    """An object with a number."""

    def __init__(self, start: int = 0) -> None:
        if start < 0:
            raise SpaceError("a counter starts at 0 or more")
        self.count = start

    def add(self, number: int) -> int:
        self.count += number
        return self.count

    def fail(self, kind: str) -> None:
        raise ERRORS[kind]("the count is wrong")

    def end(self, code: int) -> None:
        os._exit(code)

    def crash(self):
        os.kill(os.getpid(), signal.SIGSEGV)

    def leave(self) -> None:
        sys.exit(3)

    def warn(self, times: int) -> int:
        for number in range(times):
            warnings.warn(f"count {number}", rl.CoachWarning, stacklevel=1)
        return times

    def warn_as_a_library(self) -> None:
        warnings.warn("soon", FutureWarning, stacklevel=1)

    def tensor(self, numbers: torch.Tensor) -> torch.Tensor:
        numbers += 1
        return numbers

    def mask(self) -> tuple[int, bool]:
        return os.getpgid(0), signal.getsignal(signal.SIGINT) is signal.SIG_IGN

    def wait(self) -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        time.sleep(PATIENCE)

    def close(self) -> list[str]:
        return [f"closed at {self.count}"]


@pytest.fixture
def worker():
    with closing(WorkerProcess(Counter, start_method="fork")) as made:
        yield made


@pytest.mark.parametrize("start_method", STARTS)
def test_worker_calls_are_made_in_order_and_close_returns_the_objects(start_method):
    worker = WorkerProcess(partial(Counter, start=3), start_method=start_method)
    worker.request(Counter.add, 2)
    assert worker.reply() == 5
    futures = [worker.submit(Counter.add, 1) for _ in range(3)]
    assert [future.result() for future in futures] == [6, 7, 8]
    assert worker.close() == ["closed at 8"]
    assert worker.close() == []
    assert not psutil.pid_exists(worker.pid)


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("CheckpointError", CheckpointError),
        ("EnvironmentFault", EnvironmentFault),
        ("ParameterError", rl.ConfigurationError),
        ("SpaceError", SpaceError),
        ("ValueError", RunError),
    ],
)
def test_worker_error_is_raised_here_with_its_traceback(worker, raised, kind):
    worker.request(Counter.fail, raised)
    with pytest.raises(kind) as caught:
        worker.reply()
    assert type(caught.value) is kind
    assert "in fail" in str(caught.value.__cause__)
    assert worker.submit(Counter.add, 1).result() == 1


def test_worker_whose_object_cannot_be_made_raises_at_each_request():
    with closing(WorkerProcess(partial(Counter, start=-1), start_method="fork")) as worker:
        for _ in range(2):
            with pytest.raises(SpaceError):
                worker.submit(Counter.add, 1).result()


def test_worker_warnings_are_given_here_before_the_reply():
    heard: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # else the fork has those of the tests, which are errors
        worker = WorkerProcess(Counter, start_method="fork", on_warning=heard.append)
    with closing(worker):
        worker.request(Counter.warn, 2)
        assert worker.reply() == 2
        assert heard == ["count 0", "count 1"]
        worker.submit(Counter.warn_as_a_library).result()
        assert heard[2:] == ["FutureWarning: soon"]


def test_worker_arrays_are_sent_by_value(worker):
    ours = torch.zeros(2)
    theirs = worker.submit(Counter.tensor, ours).result()
    assert (ours.tolist(), theirs.tolist()) == ([0, 0], [1, 1])
    assert not theirs.is_shared()


ENDS = {
    "exit code 4)": lambda worker: worker.request(Counter.end, 4),
    "signal SIGKILL, out of memory perhaps)": lambda worker: os.kill(worker.pid, signal.SIGKILL),
    "signal SIGSEGV) ( ... .py, line": lambda worker: worker.request(Counter.crash),
}
"""How workers end, by what is said of it."""


@pytest.mark.parametrize("start_method", STARTS)
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_worker_that_dies_is_lost_and_can_be_restarted(start_method, end):
    with closing(WorkerProcess(Counter, start_method=start_method)) as worker:
        assert worker.submit(Counter.add, 1).result() == 1
        end(worker)
        with pytest.raises(WorkerLost) as caught:
            worker.submit(Counter.add, 1).result()
        assert not caught.value.is_hung
        with pytest.raises(WorkerLost):
            worker.submit(Counter.add, 1).result()
        assert (worker.is_lost, worker.losses) == (True, 1)
        worker.restart()
        assert worker.submit(Counter.add, 1).result() == 1
        assert (worker.is_lost, worker.losses) == (False, 0)


class Limit:
    """Half a second for whatever."""

    shortest = 0.1

    def __init__(self) -> None:
        self.progress = get_context("fork").RawValue("i", 0)

    def seconds(self, at: int) -> float:
        return 0.5 + at


def test_worker_without_progress_is_killed_at_its_limit():
    with closing(WorkerProcess(Counter, start_method="fork", time_limit=Limit())) as worker:
        worker.request(Counter.wait)
        with pytest.raises(WorkerLost) as caught:
            worker.reply()
        assert caught.value.is_hung


def test_worker_reply_to_an_abandoned_request_is_dropped_and_its_warnings_are_given(worker):
    heard: list[str] = []
    worker.on_warning = heard.append
    worker.request(Counter.warn, 2)
    worker.request(Counter.add, 1)
    assert worker.reply() == 1
    assert heard == ["count 0", "count 1"]


@pytest.mark.parametrize("is_independent", [False, True])
def test_worker_signals_are_left_to_the_parent_or_are_its_own(is_independent):
    make = WorkerProcess(Counter, start_method="fork", is_independent=is_independent)
    with closing(make) as worker:
        group, ignores = worker.submit(Counter.mask).result()
        assert (group == worker.pid, ignores) == (is_independent, not is_independent)
        if not is_independent:
            for number in (*STOPS, *SAVES):
                os.kill(worker.pid, number)
            assert worker.submit(Counter.add, 1).result() == 1


def test_worker_closed_without_grace_ends_in_the_midst_of_a_call(worker):
    pending = worker.submit(Counter.wait)
    worker.close(grace=0.0)
    with pytest.raises(WorkerLost):
        pending.result()


PROGRAM = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from coach_rl.processes import WorkerProcess, worker_process
from tests.processes.test_worker_process import Counter

worker_process.GRACE_SECONDS = 0.1
if __name__ == "__main__":
    method, is_independent = sys.argv[1], sys.argv[2] == "True"
    workers = [
        WorkerProcess(Counter, start_method=method, is_independent=is_independent)
        for _ in range(2)
    ]
    for worker in workers:
        worker.request(Counter.mask)
        worker.reply()
    workers[1].request(Counter.wait)
    print(*[worker.pid for worker in workers], flush=True)
    if sys.argv[3] == "waits":
        time.sleep(3600)
"""


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    ("start_method", "end", "is_independent"),
    [("fork", "killed", False), ("forkserver", "killed", True), ("fork", "returns", False)],
)
def test_worker_ends_after_its_parent(tmp_path, start_method, end, is_independent):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    words = [start_method, str(is_independent), "waits" if end == "killed" else "returns"]
    with subprocess.Popen(
        [sys.executable, str(file), *words], stdout=subprocess.PIPE, text=True
    ) as program:
        workers = [psutil.Process(int(pid)) for pid in program.stdout.readline().split()]
        if end == "killed":
            program.kill()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive


def test_worker_that_forked_another_leaves_no_pipe_open():
    first = WorkerProcess(Counter, start_method="fork")
    with closing(WorkerProcess(Counter, start_method="fork")) as second:
        second.submit(Counter.add, 1).result()
        process = psutil.Process(first.pid)
        first._connection.close()
        wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        first.close()


def test_payload_holds_the_source_of_what_no_process_can_import(tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    file.write_text("class Own:\n    number = 7\n")
    module = type(sys)("an_executed_module")
    module.__file__, module.__spec__ = str(file), None
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(file.read_text(), str(file), "exec"), module.__dict__)
    payload = pickle.loads(pickle.dumps(WorkerPayload.of(module.Own)))
    del sys.modules[module.__name__]
    assert payload.make().number == 7


def test_forked_worker_drops_inherited_crash_handlers():
    program = """
import os, signal
from contextlib import closing
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import WorkerProcess

class Crashing:
    def crash(self):
        os.kill(os.getpid(), signal.SIGSEGV)

if __name__ == "__main__":
    signal.signal(signal.SIGSEGV, lambda *_: os._exit(0))
    with closing(WorkerProcess(Crashing, start_method="fork")) as worker:
        try:
            worker.submit(Crashing.crash).result()
        except WorkerLost as error:
            print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "signal SIGSEGV" in done.stdout, done.stderr
