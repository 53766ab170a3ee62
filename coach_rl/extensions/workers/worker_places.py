"""Places of workers: processes of this machine, Ray actors, or this process.

Ray is a cluster's, or runs on this machine alone for as long as this process needs. It listens on
all of a machine's addresses, and runs programs for anyone who may connect. So a cluster of our own
requires a token, which only this user can read, and has no dashboard.
"""

import contextlib
import logging
import os
import secrets
import socket
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from coach_rl.core.errors import CoachWarning, ConfigurationError, how_to_install
from coach_rl.processes.worker_messages import ServedObject, WorkerLost, WorkerPayload
from coach_rl.processes.worker_process import (
    GRACE_SECONDS,
    Method,
    Result,
    WorkerProcess,
    give_warning,
)

CONNECT_SECONDS = 5.0
"""Time within which the head of a cluster has to answer."""
_ADVICE = "docs/cluster.md explains how to start one"


class Worker(Protocol):
    """An object somewhere, whose methods are called; `WorkerProcess` is one.

    scores = worker.submit(Player.play, episodes).result()
    """

    def submit(self, method: Method[Result], *arguments: object) -> "Future[Result]":
        """The future result of a method; a `WorkerLost` if the worker is gone."""
        ...

    def close(self) -> object:
        """Close the object and end the worker; harmless when repeated."""
        ...


StartWorker = Callable[[Callable[[], object]], Worker]
"""Starts a worker, given a function that makes its object there."""


class InlineWorker:
    """A worker in this process, where calls are made at once.

    Args:
        make: Makes a copy of the object.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        self._object: Any = WorkerPayload.of(make).make()

    def submit(self, method: Method[Result], *arguments: object) -> "Future[Result]":
        """See `Worker`; errors are raised at once."""
        future: Future[Result] = Future()
        future.set_result(getattr(self._object, method.__name__)(*arguments))
        return future

    def close(self) -> None:
        self._object.close()


class RayWorker:
    """A worker that is a Ray actor on one core.

    Args:
        ray: The module, connected.
        make: Makes the object there.
    """

    def __init__(self, ray: ModuleType, make: Callable[[], object]) -> None:
        self._ray = ray
        self.actor = ray.remote(num_cpus=1)(_Actor).remote(WorkerPayload.of(make))
        """Ray's handle of it."""

    def submit(self, method: Method[Result], *arguments: object) -> "Future[Result]":
        errors = self._ray.exceptions
        future: Future[Result] = Future()

        def settle(done: "Future[Any]") -> None:
            try:
                (kind, content), texts = done.result()
                for text in texts:
                    give_warning(text)
                if kind == "failed":
                    content.raise_here()
            except (errors.RayActorError, errors.ObjectLostError, errors.NodeDiedError):
                future.set_exception(WorkerLost("its actor is gone"))
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(content)

        self.actor.call.remote(method.__name__, arguments).future().add_done_callback(settle)
        return future

    def close(self) -> None:
        with suppress(Exception):
            self.submit(Worker.close).result(GRACE_SECONDS)
        with suppress(Exception):
            self._ray.kill(self.actor)


def workers_at(place: str, count: int) -> StartWorker:
    """Starter of workers at a place, which is joined.

    Args:
        place: inline, local, ray or ray:ADDRESS; see `CollectionParameters.on`.
        count: Number of workers to come.

    Raises:
        ConfigurationError: Ray is not installed, not there, or has too few cores.
    """
    if place == "inline":
        return InlineWorker
    if place == "local":
        return WorkerProcess
    ray = import_ray()
    if not ray.is_initialized():
        join_ray(ray, place.partition(":")[2] or None, num_cpus=count)
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < count:
        raise ConfigurationError(
            f"source.workers is {count}, a core each, and the Ray cluster has {cores} cores; "
            f"lower it to {cores}, or add nodes to the cluster"
        )
    return partial(RayWorker, ray)


class _Actor:
    """The object and its calls on the actor's side; warnings come with each result."""

    def __init__(self, payload: WorkerPayload) -> None:
        self._served = ServedObject(payload.make)

    def call(self, method: str, arguments: tuple[object, ...]) -> tuple[object, list[str]]:
        """The outcome of a call, see `ServedObject`, and warnings."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", CoachWarning)
            outcome = self._served.call(method, arguments)
        texts = [str(each.message) for each in caught if issubclass(each.category, CoachWarning)]
        return outcome, texts


def import_ray() -> ModuleType:
    """Ray, which sends no usage statistics unless the user has enabled them.

    Raises:
        ConfigurationError: It is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise ConfigurationError(
            f"running on a Ray cluster needs Ray; {how_to_install('ray')}"
        ) from error
    return ray


def join_ray(ray: ModuleType, address: str | None, **settings: object) -> None:
    """Join a cluster, or start one of this machine alone.

    Args:
        ray: The module.
        address: HOST:PORT of the cluster's head, or local for one of our own. None: the cluster
            that RAY_ADDRESS names or that is found on this machine, else one of our own.
        settings: Arguments of `ray.init` for one of our own.

    Raises:
        ConfigurationError: There is no such cluster, or it refuses this process.
    """
    if address is not None and address.startswith("ray://"):
        raise ConfigurationError(
            f"'{address}' is for Ray's client, which has no folder for the runs on this machine; "
            "let this machine join the cluster with `ray start --address=HOST:PORT`, and give "
            "ray:HOST:PORT"
        )
    host, _, port = (address or "").rpartition(":")
    if port.isdecimal():
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"no Ray cluster answers at {address}: {error}; {_ADVICE}"
            ) from error
    elif address not in (None, "auto", "local"):
        raise ConfigurationError(f"a Ray cluster's address is HOST:PORT, got '{address}'")
    try:
        if address == "local":
            start_own_ray(ray, **settings)
            return
        try:
            ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        except ConnectionError:
            if address is not None or "RAY_ADDRESS" in os.environ:
                raise
            start_own_ray(ray, **settings)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigurationError(
            f"cannot join the Ray cluster{f' at {address}' if address else ''}: "
            f"{first_line(str(error))}; see that RAY_AUTH_MODE and the token are the cluster's: "
            f"{_ADVICE}"
        ) from error


def start_own_ray(ray: ModuleType, **settings: object) -> None:
    """Start Ray on this machine alone, with a token required and without its dashboard.

    A mode or token of the user's own (RAY_AUTH_MODE, RAY_AUTH_TOKEN) is left as it is.

    Args:
        ray: The module.
        settings: More arguments of `ray.init`.
    """
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if os.environ["RAY_AUTH_MODE"] == "token" and "RAY_AUTH_TOKEN" not in os.environ:
        _make_token()
    if hasattr(ray, "_raylet"):
        ray._raylet.Config.initialize("")  # it has read the variables when it was imported
    ray.init(
        address="local",
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        **settings,
    )


def first_line(text: str) -> str:
    """The first line of an error of Ray's."""
    return next(filter(None, map(str.strip, text.splitlines())), "no reason given")


def _make_token() -> None:
    """Make Ray's token, or keep the one there is, readable for this user alone."""
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray" / "auth_token"))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        with contextlib.suppress(PermissionError):  # another user's, who may share it
            path.chmod(0o600)
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32))
