"""Telemetry: the sinks that write or show the records of a run.

May import core, graph managers and configuration; `core.log_records` defines records and sinks.
The sinks are `log_files`, `tensorboard` and `console`, which shows `figures`, a run's newest
numbers. `summary` computes the numbers of a run's end, `resources` measures the load of the
machine, `description` has an experiment in words. Start with `log_files`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.telemetry.console import ConsoleSink
    from coach_rl.telemetry.figures import Figures
    from coach_rl.telemetry.log_files import CsvSink, JsonlReader, JsonlSink
    from coach_rl.telemetry.summary import Summary, evaluation_table
    from coach_rl.telemetry.tensorboard import TensorBoardSink
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ConsoleSink", "CsvSink", "Figures", "JsonlReader", "JsonlSink", "Summary", "TensorBoardSink",
    "evaluation_table",
]  # fmt: skip
