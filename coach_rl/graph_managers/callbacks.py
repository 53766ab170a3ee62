"""Callbacks: small functions that see every record of `GraphManager.improve` and may act on it.

def until_it_walks(record, run):
    if record.scalars.get("evaluation/reward_mean", 0) >= 1_000:
        run.progress.request_checkpoint()
        run.stop("it walks")
    elif record.kind == "evaluation":
        yield run.note({"walk/missing": 1_000 - record.scalars["evaluation/reward_mean"]})

They are called in their order. What one adds is seen by those after it, as if each were wrapped
around the stream that the one before it makes.
"""

import types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from coach_rl.core.errors import (
    CallbackError,
    ConfigurationError,
    ParameterError,
    close_safely,
    warn,
)
from coach_rl.core.log_records import LogRecord
from coach_rl.core.shown_text import shown_error
from coach_rl.core.state import State

Callback: TypeAlias = Callable[..., LogRecord | Iterable[LogRecord] | None]
"""Called with a record and the graph manager; returns or yields the records that it adds.

A callback that remembers something is an object with `state_dict` and `load_state_dict`, so that a
resumed run continues exactly; one that holds something open has `close`. One with `begin` is given
the graph manager when its graph has been built: `points_of_graph` has the points where it can
observe data, and `run.progress.added` takes records while a tick lasts.
"""


class CallbackParameters(Protocol):
    """A frozen description of a callback that has settings or remembers something."""

    def build(self) -> Callback:
        """A new callback."""
        ...


class Callbacks:
    """The callbacks of a run.

    Args:
        callbacks: In their order; a description is built.
    """

    def __init__(self, callbacks: Sequence[Callback | CallbackParameters] = ()) -> None:
        self._callbacks: dict[str, Callback] = {}
        counts = Counter[str]()
        for each in callbacks:
            name = name_of(each)
            counts[name] += 1
            name = name if counts[name] == 1 else f"{name} {counts[name]}"
            self._callbacks[name] = each.build() if hasattr(each, "build") else each

    def begin(self, run: object) -> None:
        """Call those that have a `begin`.

        Args:
            run: The graph manager, whose graph has just been built.

        Raises:
            ConfigurationError: A callback does not fit the run.
            CallbackError: A callback failed.
        """
        for name, callback in self._callbacks.items():
            if hasattr(callback, "begin"):
                try:
                    callback.begin(run)
                except (KeyboardInterrupt, ConfigurationError):
                    raise
                except BaseException as error:  # of whatever the user's code does
                    raise CallbackError(
                        f"the callback {name} failed at the beginning: {shown_error(error)}; "
                        "correct it, or leave it out"
                    ) from error

    def with_added(self, record: LogRecord, run: object) -> list[LogRecord]:
        """A record and those that the callbacks add to it, in their order.

        Args:
            record: The record.
            run: The graph manager.

        Raises:
            CallbackError: A callback failed, or returned something else than records.
        """
        records = [record]
        for name, callback in self._callbacks.items():
            records = [
                each for seen in records for each in (seen, *_added(name, callback, seen, run))
            ]
        return records

    def state_dict(self) -> State:
        """The states of those that have one, by name."""
        return {
            name: callback.state_dict()
            for name, callback in self._callbacks.items()
            if hasattr(callback, "state_dict")
        }

    def load_state_dict(self, state: State) -> None:
        """Load the states of the callbacks that were saved; new ones start empty."""
        for name, saved in state.items():
            callback: object = self._callbacks.get(name)
            if hasattr(callback, "load_state_dict"):
                callback.load_state_dict(saved)
            else:
                warn(
                    f"the checkpoint has the state of the callback {name}, which this run does not "
                    "have; the state is dropped. Pass the callback again to continue exactly"
                )

    def close(self) -> None:
        """Close those that can be closed."""
        for name, callback in self._callbacks.items():
            if hasattr(callback, "close"):
                close_safely(f"the callback {name}", callback.close)


def name_of(callback: Callback | CallbackParameters) -> str:
    """Its name in messages and checkpoints: the function's, or the object's.

    The object's is its `str` where its class defines one, and the name of its class elsewhere.
    """
    if isinstance(callback, types.FunctionType | types.MethodType):
        return callback.__name__
    has_text = type(callback).__str__ is not object.__str__
    return str(callback) if has_text else type(callback).__name__


def require_callbacks(callbacks: Sequence[object]) -> None:
    """Raise `ParameterError` unless all of them are callbacks or descriptions of one."""
    for each in callbacks:
        if isinstance(each, type):
            raise ParameterError(
                f"callbacks take functions and objects, got the class {each.__name__}; write "
                f"{each.__name__}(...), with brackets"
            )
        if not (callable(each) or hasattr(each, "build")):
            raise ParameterError(
                "a callback is a function of a record and the run, or a parameter class with "
                f"build(), got {each!r}"
            )


def _added(name: str, callback: Callback, record: LogRecord, run: object) -> list[LogRecord]:
    try:
        answer = callback(record, run)
        if answer is None:
            return []
        added = [answer] if isinstance(answer, LogRecord) else list(answer)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of whatever the user's code does
        raise CallbackError(
            f"the callback {name} failed at the {record.kind} record after "
            f"{record.unit(record.moment)}: {shown_error(error)}; correct it, or leave it out"
        ) from error
    for each in added:
        if not isinstance(each, LogRecord) or each.kind != "note":
            what = f"a record of kind '{each.kind}'" if isinstance(each, LogRecord) else repr(each)
            raise CallbackError(
                f"the callback {name} added {what}; it may add notes, made with "
                "run.note({'room/quantity': 1.0})"
            )
    return added
