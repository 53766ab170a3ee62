"""Places of workers: processes of this machine, Ray actors, or this process."""

import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Protocol

from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.processes.ray_connection import import_ray, join_ray
from coach_rl.processes.worker_messages import ServedObject, WorkerLost, WorkerPayload
from coach_rl.processes.worker_process import (
    GRACE_SECONDS,
    Method,
    Result,
    WorkerProcess,
    give_warning,
)


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
        """See `Worker`."""
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
        """See `Worker`."""
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
        """See `Worker`."""
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
            f"collection.workers is {count}, a core each, and the Ray cluster has {cores} cores; "
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
