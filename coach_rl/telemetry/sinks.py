"""Sinks: objects that take log records and write them somewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from coach_rl.telemetry.records import LogRecord


class Sink(Protocol):
    """A taker of log records.

    for record in graph_manager.improve():
        sink.write(record)
    sink.close()
    """

    def write(self, record: LogRecord) -> None:
        """Take one record; what was taken survives a kill of the process."""
        ...

    def close(self) -> None:
        """Finish; harmless when repeated."""
        ...


@dataclass(frozen=True, kw_only=True)
class SinkRun:
    """The run whose records a sink takes."""

    folder: Path
    """The run's folder; a resumed run has the same."""
    manifest: Mapping[str, Any]
    """The run's origin: name, seed, parameters, panel, versions; see manifest.json."""


SinkMaker: TypeAlias = Callable[..., Sink]
"""Called with the `SinkRun`, once its folder is there; a sink's class, or a function."""


class SinkParameters(Protocol):
    """A frozen description of a sink."""

    def check(self) -> None:
        """Raise `ConfigurationError` where the sink cannot work here, before the run begins."""
        ...

    def build(self, run: SinkRun) -> Sink:
        """A new sink; opened again, with the same run, after it has failed."""
        ...


def made_sink(sink: SinkMaker | SinkParameters, run: SinkRun) -> Sink:
    """A sink from its description, or from its class."""
    return sink(run) if callable(sink) else sink.build(run)


def sink_name(sink: SinkMaker | SinkParameters) -> str:
    """Its name in messages: what a description says of itself, or the class's name."""
    if callable(sink):
        return str(getattr(sink, "__name__", sink))
    says = type(sink).__str__ is not object.__str__
    return str(sink) if says else type(sink).__name__


def scalars_by_tag(record: LogRecord) -> dict[str, float]:
    """A record's scalars by the names under which every service shows them.

    An agent's stand under `<level>/<agent>/`, so that a hierarchy's levels lie side by side.
    """
    prefix = "".join(f"{name}/" for name in (record.level, record.agent) if name)
    return {f"{prefix}{name}": value for name, value in record.scalars.items()}
