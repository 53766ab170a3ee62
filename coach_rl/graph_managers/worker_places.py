"""Places where workers run: processes of this machine, Ray actors, or the run's own process.

A handle passes calls of `BlockWorker`'s methods on and returns futures of their replies. Starting
processes, carrying calls to them and noticing that one is gone is the work of
`concurrent.futures`, and of Ray.
"""

import importlib
import logging
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

from coach_rl.core.errors import (
    CheckpointError,
    CoachError,
    CoachWarning,
    ConfigurationError,
    EnvironmentFault,
    NonFiniteError,
    RunError,
    SpaceError,
    how_to_install,
)
from coach_rl.core.own_ray import start_own_ray
from coach_rl.graph_managers.block_worker import BlockWorker, Setup
from coach_rl.processes.main_guard import leave_if_importing_script

_KINDS = (SpaceError, ConfigurationError, CheckpointError, NonFiniteError, EnvironmentFault)
_CLOSE_SECONDS = 10.0
_CONNECT_SECONDS = 5.0


class WorkerLost(CoachError):
    """A worker is gone."""


class WorkerTraceback(Exception):
    """The cause of an error that came from a worker: its traceback as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The result of a call; can be sent from any process."""

    result: object = None
    warnings: tuple[str, ...] = ()
    failure: tuple[type[CoachError], str, str] | None = None
    """Kind, message and traceback of an error; None where there was none."""


class Handle(Protocol):
    """A worker somewhere."""

    def ask(self, verb: str, *arguments: object) -> "Future[Reply]":
        """Call a method of the worker; a `WorkerLost` as the future's error says it is gone."""
        ...

    def close(self) -> None:
        """End the worker, its environments first; harmless when repeated."""
        ...


@dataclass(frozen=True, kw_only=True)
class Luggage:
    """A worker's setup, and the code that it needs and no process could import."""

    setup: bytes
    modules: Mapping[str, tuple[str, str]]
    """File and source of modules that have been executed under a name of our own: presets."""
    path: tuple[str, ...]
    """The search path for others."""


class Served:
    """The worker on its own side of a handle."""

    def __init__(self) -> None:
        self._worker: BlockWorker | None = None

    def answer(self, verb: str, arguments: tuple[object, ...]) -> Reply:
        """Call a method, `begin` first; errors and warnings are part of the reply."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CoachWarning)
            try:
                result, failure = self._call(verb, arguments), None
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                kind = next((each for each in _KINDS if isinstance(error, each)), RunError)
                text = str(error)
                if not isinstance(error, CoachError):
                    text = f"a worker failed: {type(error).__name__}: {text}"
                result, failure = None, (kind, text, traceback.format_exc())
        said = (str(each.message) for each in caught if issubclass(each.category, CoachWarning))
        return Reply(result=result, warnings=tuple(said), failure=failure)

    def _call(self, verb: str, arguments: tuple[object, ...]) -> object:
        if verb == "begin":
            (luggage,) = arguments
            assert isinstance(luggage, Luggage)
            self._worker = BlockWorker(_unpacked(luggage))
            return os.getpid(), self._worker.spaces
        assert self._worker is not None
        return getattr(self._worker, verb)(*arguments)


class InlineWorker:
    """A worker in this process, which does what it is asked at once."""

    def __init__(self) -> None:
        self._served = Served()

    def ask(self, verb: str, *arguments: object) -> "Future[Reply]":
        """See `Handle`."""
        future: Future[Reply] = Future()
        future.set_result(self._served.answer(verb, arguments))
        return future

    def close(self) -> None:
        """Close the environments."""
        self._served.answer("close", ())


class LocalWorker:
    """A worker in a process of this machine."""

    def __init__(self) -> None:
        leave_if_importing_script()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([BlockWorker.__module__])
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_begin_process)
        self.process: int | None = None
        """Its process id, once it has begun."""

    def ask(self, verb: str, *arguments: object) -> "Future[Reply]":
        """See `Handle`."""
        try:
            future = self._pool.submit(_answer, verb, arguments)
        except (BrokenExecutor, RuntimeError) as error:  # it was lost before
            return _failed(WorkerLost(str(error)))
        if verb == "begin":
            future.add_done_callback(self._note_process)
        return _translated(future, (BrokenExecutor,), "its process is gone")

    def close(self) -> None:
        """End the process, gently first."""
        closing = self.ask("close")
        with suppress(Exception):
            closing.result(_CLOSE_SECONDS)
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self.process is not None and not closing.done():
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)
        self._pool.shutdown()

    def _note_process(self, future: "Future[Reply]") -> None:
        if future.exception() is None and isinstance(begun := future.result().result, tuple):
            self.process = begun[0]


class RayWorker:
    """A worker that is a Ray actor on one core."""

    def __init__(self) -> None:
        self._ray = _ray()
        self.actor = self._ray.remote(num_cpus=1)(Served).remote()
        """Ray's handle of it."""

    def ask(self, verb: str, *arguments: object) -> "Future[Reply]":
        """See `Handle`."""
        errors = self._ray.exceptions
        future = self.actor.answer.remote(verb, arguments).future()
        gone = (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError)
        return _translated(future, gone, "its actor is gone")

    def close(self) -> None:
        """End the actor."""
        with suppress(Exception):
            self.ask("close").result(_CLOSE_SECONDS)
        with suppress(Exception):
            self._ray.kill(self.actor)


def handles(place: str, workers: int) -> Callable[[], Handle]:
    """Maker of the handles of workers at a place, after connecting to it.

    Raises:
        ConfigurationError: Ray is not installed, not there, or has too few cores.
    """
    if place == "inline":
        return InlineWorker
    if place == "local":
        return LocalWorker
    ray = _ray()
    if not ray.is_initialized():
        _join(ray, place.partition(":")[2], workers)
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < workers:
        raise ConfigurationError(
            f"collection.workers is {workers}, a core each, and the Ray cluster has {cores} cores; "
            f"lower it to {cores}, or add nodes to the cluster"
        )
    return RayWorker


def _join(ray: ModuleType, address: str, workers: int) -> None:
    """Join a cluster; without an address the one that is found, else one of this machine alone."""
    settings: dict[str, object] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address:
            _require_open(address)
            ray.init(address=address, **settings)
            return
        try:
            ray.init(address="auto", **settings)
        except ConnectionError:
            start_own_ray(ray, num_cpus=workers)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        at = f" at {address}" if address else ""
        text = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigurationError(
            f"no Ray cluster{at} could be joined: {text}; `ray start --head` starts one"
        ) from error


def _require_open(address: str) -> None:
    """Raise OSError where nothing answers at HOST:PORT, for which Ray would wait long."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()


def packed(setup: Setup) -> Luggage:
    """A worker's setup, ready to be sent; ConfigurationError where a part of it cannot be."""
    try:
        content = pickle.dumps(setup)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ConfigurationError(
            f"this experiment cannot be sent to workers: {error}; classes and functions that its "
            "parameters name must stand at the top level of a file"
        ) from error
    modules = {
        name: (file, Path(file).read_text(encoding="utf-8"))
        for name, module in list(sys.modules.items())
        if name.encode() in content and (file := _executed_file(name, module)) is not None
    }
    return Luggage(setup=content, modules=modules, path=tuple(sys.path))


def _unpacked(luggage: Luggage) -> Setup:
    known = set(sys.path)
    sys.path += [folder for folder in luggage.path if folder not in known]
    for name, (file, source) in luggage.modules.items():
        if name in sys.modules:
            continue
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = file
        exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
    setup: Setup = pickle.loads(luggage.setup)  # from the run that started this worker
    return setup


def _executed_file(name: str, module: ModuleType) -> str | None:
    """Return the file of a module that came from executing it rather than from an import."""
    is_imported = name == "__main__" or getattr(module, "__spec__", None) is not None
    return None if is_imported else getattr(module, "__file__", None)


_served: Served | None = None
"""The worker of this process, where it is one."""


def _begin_process() -> None:
    """Begin a worker process: signals are for the run, which saves what is here."""
    global _served
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    _served = Served()


def _answer(verb: str, arguments: tuple[object, ...]) -> Reply:
    assert _served is not None
    return _served.answer(verb, arguments)


def _end_with_the_run() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _ray() -> ModuleType:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it tells nobody unless asked to
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise ConfigurationError(
            f"--on ray needs Ray, which is not installed; {how_to_install('ray')}"
        ) from error


def _translated(
    future: "Future[Reply]", gone: tuple[type[BaseException], ...], message: str
) -> "Future[Reply]":
    """The same future, in which a `WorkerLost` stands for errors of these kinds."""
    outer: Future[Reply] = Future()

    def pass_on(done: "Future[Reply]") -> None:
        if done.cancelled():
            outer.set_exception(WorkerLost(message))
            return
        error = done.exception()
        if error is None:
            outer.set_result(done.result())
        elif isinstance(error, gone):
            outer.set_exception(WorkerLost(message))
        else:
            outer.set_exception(error)

    future.add_done_callback(pass_on)
    return outer


def _failed(error: Exception) -> "Future[Reply]":
    future: Future[Reply] = Future()
    future.set_exception(error)
    return future
