"""Errors of workers."""

from contextlib import closing
from functools import partial

import pytest
from test_worker_process import ENDS, Counter, Limit

from coach_rl.core.errors import CoachWarning, ConfigurationError, RunError, SpaceError
from coach_rl.processes import WorkerLost, WorkerProcess
from tests.refusals import check_refused


def call(method, *values, start=0, **settings):
    with closing(WorkerProcess(partial(Counter, start), start_method="fork", **settings)) as worker:
        worker.submit(method, *values).result()


def call_after(end):
    with closing(WorkerProcess(Counter, start_method="fork")) as worker:
        end(worker)
        worker.submit(Counter.add, 1).result()


CASES = [
    (partial(call, Counter.fail, "SpaceError"), SpaceError, "the count is wrong"),
    (partial(call, Counter.fail, "ValueError"), RunError, "a worker failed: ValueError: the count"),
    (partial(call, Counter.leave), RunError, "SystemExit: 3"),
    (partial(call, Counter.add, 1, start=-1), SpaceError, "starts at 0"),
    (partial(call, Counter.warn, 1), CoachWarning, "count 0"),
    (partial(call, Counter.wait, time_limit=Limit()), WorkerLost, "took more than 0.5 s"),
    *((partial(call_after, end), WorkerLost, f"died ({message}") for message, end in ENDS.items()),
    (partial(call_after, WorkerProcess.close), WorkerLost, "exit code 0"),
    (
        lambda: WorkerProcess(lambda: Counter(), start_method="spawn"),
        ConfigurationError,
        "cannot be sent to a worker process ... top level",
    ),
]


@pytest.mark.parametrize(("failing", "kind", "message"), CASES)
def test_processes_error_names_value_and_rule(failing, kind, message):
    check_refused(failing, kind, message)
