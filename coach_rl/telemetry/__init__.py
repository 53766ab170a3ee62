"""Telemetry: the records of a run, and the sinks that write or show them.

May import core only. `records` defines log records and sinks. The sinks are `log_files`,
`tensorboard`, that of `trackers`, `console` and `notebook`; the last two show `figures`, a run's
newest numbers. `statistics` and `summary` compute the numbers of evaluations; `resources` measures
the load of the machine, `profiler` the time of each part, `inspection` the data that passes a
point. `video` keeps and writes films of episodes, `episode_recorder` films them, `window` shows
them. Start with `records`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.telemetry.console import ConsoleSink
    from coach_rl.telemetry.figures import Figures
    from coach_rl.telemetry.log_files import CsvSink, JsonlReader, JsonlSink
    from coach_rl.telemetry.records import (
        Evaluation,
        Kind,
        LogRecord,
        Sink,
        SinkParameters,
        SinkRun,
    )
    from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean
    from coach_rl.telemetry.summary import Summary, evaluation_table
    from coach_rl.telemetry.tensorboard import TensorBoardSink
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ConsoleSink", "CsvSink", "Evaluation", "Figures", "JsonlReader", "JsonlSink", "Kind",
    "LogRecord", "Sink", "SinkParameters", "SinkRun", "Summary", "TensorBoardSink",
    "bootstrap_interval", "evaluation_table", "interquartile_mean",
]  # fmt: skip
