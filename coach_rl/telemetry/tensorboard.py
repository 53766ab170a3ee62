"""Log records for TensorBoard: scalars by environment steps, charts, texts, histograms and films.

The charts are a page under "Custom Scalars". Its first categories answer whether a run learns and
how fast; those below help to find a cause: losses of each agent, sub-goals of each level, faults.
Events are written with the messages of the tensorboard package, which needs no TensorFlow.
"""

import contextlib
import io
import os
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, SourceMetadata
from tensorboard.compat.proto.summary_pb2 import (
    DATA_CLASS_BLOB_SEQUENCE,
    DATA_CLASS_TENSOR,
    Summary,
    SummaryMetadata,
)
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.custom_scalar import metadata as layout_metadata
from tensorboard.plugins.custom_scalar.layout_pb2 import (
    Category,
    Chart,
    Layout,
    MarginChartContent,
    MultilineChartContent,
)
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as settings_metadata
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.text import metadata as text_metadata
from tensorboard.summary.writer.record_writer import RecordWriter
from tensorboard.util.tensor_util import make_tensor_proto

from coach_rl.core.log_records import LogRecord, by_tag
from coach_rl.core.records import Array

_LEARNING = (
    (
        "Return of training episodes, and mean of evaluations",
        "episode/reward evaluation/reward_mean",
    ),
    ("Success", "episode/success evaluation/success_rate"),
    ("Return of each agent in evaluations", "evaluation/reward_mean/[^/]+"),
    ("Length of episodes", "episode/length evaluation/length_mean"),
)
_LEVELS = "Sub-goals reached in evaluations, by level", "[^/]+/evaluation_level/goal_share"
_SPEED = (
    ("Steps per second", "time/steps_per_second"),
    ("Processor, percent of a core", "resources/cpu_percent"),
    ("Cores, percent", "resources/busiest_core_percent resources/cores_percent"),
    ("Memory, MiB", "resources/memory_mib"),
    ("GPU memory, MiB", "resources/gpu_memory_mib resources/gpu_memory_reserved_mib"),
)
_PROBLEMS = (
    ("Failures of environments", "faults/(?!row).+ evaluation/faults"),
    ("Updates skipped", "[^/]+/[^/]+/train/skipped_updates"),
    ("Roll-backs", "divergence/roll_backs"),
    ("Records lost", "log/lost_records"),
)
_AGENT = (
    ("Policy loss", "train/policy_loss train/actor_loss"),
    ("Value loss", "train/value_loss"),
    ("Error of the critic: TD error, squared or Huber", "train/critic_loss train/q_loss"),
    ("Q values: mean, lowest, highest", "train/q_value train/q_lowest train/q_highest"),
    ("KL divergence of an update", "train/approx_kl"),
    ("Share of actions clipped", "train/clip_fraction"),
    ("Variance of returns explained", "train/explained_variance"),
    ("Entropy", "train/entropy"),
    ("Temperature", "train/temperature"),
    ("Gradient norm", "train/(.+_)?gradient_norm"),
    ("Learning rate", "train/(.+_)?learning_rate"),
    ("Exploration", "exploration/.+"),
    ("Sub-goals corrected", "train/subgoals_.+"),
    ("Graph of way-points", "graph/.+"),
)
_LEVEL = (
    ("Whether it learns", "level/learns"),
    ("Sub-goals reached", "level/goal_share evaluation_level/goal_share"),
    ("Distance to the sub-goal, at start and end", "level/distance_at_start level/distance"),
    ("Ends of sub-episodes", "level/(horizon|outer|terminated|truncated)_share"),
    ("Decisions in a sub-episode", "level/decisions evaluation_level/decisions"),
    ("Environment steps in a sub-episode", "level/steps evaluation_level/steps"),
    ("Return of the level", "level/return evaluation_level/return"),
    ("Decisions tested, and penalised", "level/tested_share level/penalised_share"),
    ("Size of the graph", "level/graph_(places|edges) evaluation_level/graph_(places|edges)"),
    ("Seconds of planning a decision", "level/planning_seconds evaluation_level/planning_seconds"),
)


SCORES = {
    "final_evaluation/reward_mean": "final return",
    "final_evaluation/reward_iqm": "final return (IQM)",
    "final_evaluation/success_rate": "final success rate",
    "evaluation/reward_mean": "last return while training",
    "evaluation/success_rate": "last success rate while training",
    "time/steps_per_second": "steps per second",
}
"""Columns of scores beside the hyper-parameters, and their titles."""
FLUSH_SECONDS = 10.0
FORMAT = "brain.Event:2"
_PREFIX = "events.out.tfevents."


def layout(tags: Iterable[str]) -> Layout | None:
    """The charts for metrics by the tags of TensorBoard; None where there is nothing to chart.

    A chart is the same whatever other metrics a run has: TensorBoard merges the layouts of several
    runs, and would show charts twice that differ.
    """
    known = tuple(tags)
    agents = dict.fromkeys(
        match[1] for tag in known if (match := re.match(r"([^/]+/[^/]+)/train/", tag))
    )
    levels = dict.fromkeys(match[1] for tag in known if (match := re.match(r"([^/]+)/level/", tag)))
    pages = [
        ("Is it learning?", [*_interval(known), *_charts((*_LEARNING, _LEVELS), known)]),
        *((f"Agent {name}", _charts(_AGENT, known, f"{name}/")) for name in agents),
        *((f"Level {name}", _charts(_LEVEL, known, f"{name}/")) for name in levels),
        ("How fast, and what it takes", _charts(_SPEED, known)),
        ("What went wrong", _charts(_PROBLEMS, known)),
    ]
    categories = [
        Category(title=title, chart=charts) for title, page in pages if (charts := [*page])
    ]
    return Layout(category=categories) if categories else None


def _interval(tags: tuple[str, ...]) -> Iterator[Chart]:
    """The return in evaluations with its interval, exactly these tags."""
    value = "evaluation/reward_iqm"
    if value in tags:
        series = MarginChartContent.Series(value=value, lower=f"{value}_low", upper=f"{value}_high")
        yield Chart(
            title="Return in evaluations, 95 % interval",
            margin=MarginChartContent(series=[series]),
        )


def _charts(
    wanted: Iterable[tuple[str, str]], tags: tuple[str, ...], prefix: str = ""
) -> Iterator[Chart]:
    """Those charts for which there is a metric; their tags are patterns."""
    for title, patterns in wanted:
        found = [f"{re.escape(prefix)}{pattern}$" for pattern in patterns.split()]
        if any(re.match(pattern, tag) for pattern in found for tag in tags):
            yield Chart(title=title, multiline=MultilineChartContent(tag=found))


Setting = bool | float | str
"""The value of a hyper-parameter."""


def layout_value(layout: Layout) -> Summary.Value:
    """The layout of the charts; the newest of a run counts."""
    return _value(
        layout_metadata.CONFIG_SUMMARY_TAG,
        _bytes(layout.SerializeToString()),
        layout_metadata.create_summary_metadata(),
    )


def text_value(tag: str, markdown: str) -> Summary.Value:
    """A text in Markdown."""
    return _value(tag, _bytes(markdown.encode()), text_metadata.create_summary_metadata(tag, ""))


def settings_values(settings: Mapping[str, Setting], began: float) -> list[Summary.Value]:
    """Hyper-parameters of a run, and which of its scalars are scores.

    Args:
        settings: The hyper-parameters by name.
        began: When the run began, in seconds since 1970.
    """
    kinds = {bool: api_pb2.DATA_TYPE_BOOL, str: api_pb2.DATA_TYPE_STRING}
    experiment = api_pb2.Experiment(
        hparam_infos=[
            api_pb2.HParamInfo(name=name, type=kinds.get(type(value), api_pb2.DATA_TYPE_FLOAT64))
            for name, value in settings.items()
        ],
        metric_infos=[
            api_pb2.MetricInfo(name=api_pb2.MetricName(tag=tag), display_name=title)
            for tag, title in SCORES.items()
        ],
        time_created_secs=began,
    )
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=began)
    for name, value in settings.items():
        match value:
            case bool():
                start.hparams[name].bool_value = value
            case str():
                start.hparams[name].string_value = value
            case _:
                start.hparams[name].number_value = value
    return [
        _settings_value(settings_metadata.EXPERIMENT_TAG, experiment=experiment),
        _settings_value(settings_metadata.SESSION_START_INFO_TAG, session_start_info=start),
    ]


def finished_value(ended: float) -> Summary.Value:
    """The mark that a run has ended, `ended` seconds after 1970."""
    end = plugin_data_pb2.SessionEndInfo(status=api_pb2.STATUS_SUCCESS, end_time_secs=ended)
    return _settings_value(settings_metadata.SESSION_END_INFO_TAG, session_end_info=end)


def histogram_value(tag: str, bins: Array) -> Summary.Value:
    """A histogram, [bins, 3]: left edge, right edge and count, as `statistics.histogram` makes."""
    tensor = make_tensor_proto(np.asarray(bins, np.float64))
    return _value(tag, tensor, histogram_metadata.create_summary_metadata(tag, ""))


def image_value(tag: str, content: bytes) -> Summary.Value:
    """A picture, or a film as an animated one, by the content of a PNG or GIF file."""
    with Image.open(io.BytesIO(content)) as image:
        sides = [str(side).encode() for side in image.size]
    metadata = image_metadata.create_summary_metadata(display_name=tag, description="")
    return _value(tag, _bytes([*sides, content]), metadata)


def _png(image: Array) -> bytes:
    """A picture, uint8 [H, W] or [H, W, 3], as a file."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, format="PNG")
    return file.getvalue()


def _settings_value(tag: str, **content: object) -> Summary.Value:
    metadata = settings_metadata.create_summary_metadata(
        plugin_data_pb2.HParamsPluginData(**content)
    )
    return _value(tag, settings_metadata.NULL_TENSOR, metadata)


def _bytes(content: bytes | Sequence[bytes]) -> TensorProto:
    """Bytes as a tensor: a single one without, a sequence with one dimension."""
    if isinstance(content, bytes):
        return TensorProto(dtype=DT_STRING, string_val=[content])
    tensor = TensorProto(dtype=DT_STRING, string_val=content)
    tensor.tensor_shape.dim.add(size=len(content))
    return tensor


def _value(tag: str, tensor: TensorProto, metadata: SummaryMetadata) -> Summary.Value:
    is_film = metadata.plugin_data.plugin_name == image_metadata.PLUGIN_NAME
    metadata.data_class = DATA_CLASS_BLOB_SEQUENCE if is_film else DATA_CLASS_TENSOR
    return Summary.Value(tag=tag, tensor=tensor, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Introduction:
    """The introduction of a run, shown before its first record."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts in Markdown, by title."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Hyper-parameters by name."""


class TensorBoardSink:
    """Writes the content of records; flushed at a record after ten seconds, or at a checkpoint.

    An agent's scalars are `<level>/<agent>/...`, so a hierarchy's levels are shown side by side.
    The layout of the charts is rewritten whenever a metric is the first of its chart. TensorBoard's
    own writer is not used, as errors in its thread could not be caught.

    Args:
        folder: For the event files; made where there is none.
        resumed_at: The moment at which a resumed run continues; None for a new one. A
            TensorBoard that has been open since before is made to forget what the stopped run
            logged after them. On disk that must be gone already, see `runs.folder`.
        introduction: Written before everything else, where no file is there yet; None for nothing.
        known: Tags of the scalars that the run has had before, which the charts cover from the
            beginning.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resumed_at: int | None = None,
        introduction: Introduction | None = None,
        known: Iterable[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._resumed_at = resumed_at
        self._introduction = introduction or Introduction()
        self._tags = dict.fromkeys(known)
        self._layout = layout(())
        self._events: _EventFile | None = None
        """None until the first record with something to show: a run without any has no file."""

    def write(self, record: LogRecord) -> None:
        scalars = by_tag(record, record.scalars)
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        if record.kind == "file" and record.text.endswith(".gif"):
            file = self._folder / record.text
            kind = re.sub(r"^step_\d+_?", "", file.stem) or "evaluation"
            values.append(image_value(f"videos/{kind}", file.read_bytes()))
        drawn = by_tag(record, record.arrays).items()
        values += [histogram_value(tag, bins) for tag, bins in drawn if bins.ndim == 2]
        pictures = by_tag(record, record.images).items()
        values += [image_value(tag, _png(picture)) for tag, picture in pictures]
        if not values:
            return
        if self._events is None:
            self._events = self._begun()
        if scalars.keys() - self._tags.keys() or self._layout is None:
            self._lay_out(scalars)
        if record.kind == "final_evaluation":
            values.append(finished_value(time.time()))
        # One event a record takes half the time of one for each of three scalars.
        self._events.add(Event(step=record.moment, summary=Summary(value=values)))
        if record.kind == "checkpoint":  # which notes how long the file is
            self._events.flush()

    def close(self) -> None:
        if self._events is not None:
            self._events.close()
            self._events = None

    def _begun(self) -> "_EventFile":
        """A new file; a run's first begins with the introduction."""
        is_first = not any(self._folder.glob(f"{_PREFIX}*"))
        step = self._resumed_at
        events = _EventFile(self._folder, None if step is None else step + 1)
        texts = self._introduction.texts
        settings = self._introduction.settings
        values = [text_value(f"run/{title}", text) for title, text in texts.items()]
        values += settings_values(settings, time.time()) if settings else []
        if is_first and values:
            events.add(Event(summary=Summary(value=values)))
        return events

    def _lay_out(self, scalars: Iterable[str]) -> None:
        """Write the layout if these scalars change it."""
        assert self._events is not None
        self._tags |= dict.fromkeys(scalars)
        charts = layout(self._tags)
        if charts is not None and charts != self._layout:
            self._events.add(Event(summary=Summary(value=[layout_value(charts)])))
            self._layout = charts


class _EventFile:
    """A new event file.

    Args:
        folder: Where.
        forgotten_from: Step from which TensorBoard drops the values of other files; None: none.
    """

    def __init__(self, folder: Path, forgotten_from: int | None) -> None:
        stamp = f"{_later_than_all(folder):010d}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / f"{_PREFIX}{stamp}"
        self._file = self._path.open("xb")
        self._records = RecordWriter(self._file)
        self._flushed = time.monotonic()
        try:
            self.add(Event(file_version=FORMAT, source_metadata=SourceMetadata(writer="coach_rl")))
            if forgotten_from is not None:
                start = SessionLog(status=SessionLog.START)
                self.add(Event(step=forgotten_from, session_log=start))
            self.flush()
        except OSError:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the same error once more
                self._file.close()
            raise

    def add(self, event: Event) -> None:
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._flushed = time.monotonic()
        self._file.flush()
        self._path.stat()  # raises where the file has been removed

    def close(self) -> None:
        self._file.close()


def _later_than_all(folder: Path) -> int:
    """Seconds of now, or after the newest event file: TensorBoard reads files by their names.

    A run may be resumed within the second in which it began, or where the clock is behind.
    """
    names = (path.name for path in folder.glob(f"{_PREFIX}*"))
    stamps = (re.match(r"\d+", name.removeprefix(_PREFIX)) for name in names)
    return max([int(time.time()), *(int(stamp[0]) + 1 for stamp in stamps if stamp)])
