"""Sinks: objects that take log records and write them somewhere."""

from typing import Protocol

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
