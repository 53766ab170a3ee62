"""Telemetry: what a run says, and where it goes.

May import core only. `records` is the one thing a run says; each sink takes records somewhere;
`statistics` and `summary` turn evaluations into numbers one may quote; `resources` measures what a
run takes of the machine, `profiler` where its time goes; `inspection` looks at the data that passes
a point; `film` and `video` keep and write what an episode looked like, `window` shows it. `figures`
keeps the newest numbers of a run, `live_panel` shows them. Start with `records`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.telemetry.console import ConsoleSink
    from coach_rl.telemetry.figures import Figures
    from coach_rl.telemetry.log_files import CsvSink, JsonlReader, JsonlSink
    from coach_rl.telemetry.notebook import NotebookSink
    from coach_rl.telemetry.profiler import Profile, Profiler
    from coach_rl.telemetry.records import (
        Evaluation,
        Kind,
        LogRecord,
        Sink,
        SinkParameters,
        SinkRun,
    )
    from coach_rl.telemetry.resources import ResourceSampler
    from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean
    from coach_rl.telemetry.summary import Summary, evaluation_table
    from coach_rl.telemetry.tensorboard import TensorBoardSink
    from coach_rl.telemetry.tracker import TrackerParameters
    from coach_rl.telemetry.video import Film, VideoParameters, write_video
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ConsoleSink", "CsvSink", "Evaluation", "Figures", "Film", "JsonlReader", "JsonlSink", "Kind",
    "LogRecord", "NotebookSink", "Profile", "Profiler", "ResourceSampler", "Sink", "SinkParameters",
    "SinkRun", "Summary", "TensorBoardSink", "TrackerParameters", "VideoParameters",
    "bootstrap_interval", "evaluation_table", "interquartile_mean", "write_video",
]  # fmt: skip
