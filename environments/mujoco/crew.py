"""Threads that work off a list of rows together with the caller."""

import threading
import weakref
from collections.abc import Callable, Iterator

Work = Callable[[Iterator[int]], None]
"""Handles every row it can claim from the iterator."""


class Crew:
    """The calling thread and `threads - 1` helpers.

    Rows are claimed one at a time, so a helper that is held up by the rest of the machine holds up
    nobody else. The order of rows is not defined; work on one row must not touch another.
    """

    def __init__(self, threads: int) -> None:
        self._helpers = [_Helper() for _ in range(threads - 1)]
        # The helpers don't know the crew, so one forgotten without `close` still ends its threads.
        self._closer = weakref.finalize(self, _dismiss, self._helpers)

    def run(self, work: Work, count: int) -> None:
        """Run rows 0 to count - 1, and wait until all are handled.

        Raises:
            Exception: Whatever `work` raised first; other rows have been handled or left out then.
        """
        claims = iter(range(count))  # `next` on it is atomic
        busy = self._helpers[: count - 1] if count > 1 else []
        for helper in busy:
            helper.begin(work, claims)
        try:
            work(claims)
        finally:
            errors = [helper.finish() for helper in busy]
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        """End the helpers; harmless when repeated."""
        self._closer()


class _Helper:
    """One thread, asleep between `finish` and `begin`."""

    def __init__(self) -> None:
        self._start, self._done = threading.Lock(), threading.Lock()
        self._start.acquire()
        self._done.acquire()
        self._job: tuple[Work, Iterator[int]] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="mujoco-rows", daemon=True)
        self._thread.start()

    def begin(self, work: Work, claims: Iterator[int]) -> None:
        self._job = (work, claims)
        self._start.release()

    def finish(self) -> BaseException | None:
        self._done.acquire()
        error, self._error = self._error, None
        return error

    def end(self) -> None:
        self._start.release()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            self._start.acquire()
            if self._job is None:
                return
            work, claims = self._job
            self._job = None
            try:
                work(claims)
            except BaseException as error:  # handed to the caller
                self._error = error
            del work, claims
            self._done.release()


def _dismiss(helpers: list[_Helper]) -> None:
    for helper in helpers:
        helper.end()
    helpers.clear()
