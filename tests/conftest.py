"""What holds for every test."""

import functools
import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from coach_rl.processes.worker_process import WorkerProcess
from coach_rl.runs import sources
from coach_rl.sessions import session

sys.path.insert(0, str(Path(__file__).parent))

import arithmetic

from tests import builders, samples

arithmetic.apply_own_variables()


def pytest_report_header():
    """The arithmetic of this processor, on which the last digits depend, and what draws cases."""
    return [f"arithmetic: {arithmetic.in_force()}", f"samples: COACH_TEST_SEED={samples.SEED}"]


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` leaves out what is marked
def pytest_collection_modifyitems(items):
    """Draw cases; the longest file of the last ones begins first, so two processes end together."""
    samples.leave_out(items)
    items.sort(key=lambda item: item.path.name != "test_guards.py")


def pytest_collection_finish():
    """Search for garbage only in what tests make: quickly, often, and before much memory is taken.

    Python waits until a quarter of all objects is new, and modules and tests are millions of them.
    Processes that are forked don't copy memory for a search either.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item):
    """Skip tests marked `gpu` where there is none."""
    if item.get_closest_marker("gpu") is not None and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session", autouse=True)
def one_tensor_thread():
    """Small networks are fastest with one thread, and tests run side by side."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def signals_of_a_terminal():
    """Tests stop runs by signals, which a shell's background and `nohup` ignore, and hand down."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(params=["traced", pytest.param("generated", marks=pytest.mark.slow)])
def compiler(request, monkeypatch):
    """Kind of compiling, twice: a step that is only traced, and if slow also generated as C++.

    Tracing is where a step of ours can fail to be compiled, or have a number compiled in. C++ for
    the traced graph is torch's work, and most of what compiling takes.
    """
    compile_step = torch.compile

    def traced(function, *, options, **given):
        kept = {"guard_filter_fn": options["guard_filter_fn"]}
        return compile_step(function, backend="aot_eager", options=kept, **given)

    if request.param == "traced":
        monkeypatch.setattr(torch, "compile", traced)


@pytest.fixture(autouse=True)
def own_search_path():
    """A preset's folder stays in front of Python's search path, but not for the next test."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture(autouse=True)
def closed_managers():
    """Managers that a test creates are closed at its end; those of wider fixtures are not."""
    before = set(builders.CREATED)
    yield
    for manager in set(builders.CREATED) - before:
        manager.close()


@pytest.fixture
def served_evaluations(monkeypatch):
    """Background evaluations are forked by a server that has imported what they need.

    That they can be spawned as well is tested where they are defined.
    """

    def started(make, *, start_method, **given):
        assert start_method == "spawn"
        return WorkerProcess(make, start_method="forkserver", **given)

    place = "coach_rl.extensions.workers.evaluation_process.WorkerProcess"
    monkeypatch.setattr(place, started)


@pytest.fixture(scope="session", autouse=True)
def own_state_folder(tmp_path_factory):
    """Tests don't write into the user's home which code their runs have used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disk_or_git():
    """Runs of tests need not survive a power cut, and their code stays as it is meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(sources, "git_state", functools.cache(sources.git_state))
        patch.setattr(session, "keep_differences", lambda _: None)
        yield
