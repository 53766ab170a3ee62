"""Experiment trackers: Weights & Biases, Trackio (which has the same calls) and MLflow.

They keep the numbers, parameters and videos of runs.

BasicGraphParameters(..., sinks=(TrackerParameters(service="wandb", project="walking"),))

Each shows the same names by the same environment steps as TensorBoard.
"""

import glob
import importlib
import importlib.util
import json
import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count, repeat
from pathlib import Path
from typing import Any, Literal

from coach_rl.core.errors import ConfigurationError, how_to_install, warn
from coach_rl.core.file_writing import replacing
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.telemetry.records import LogRecord, Sink, SinkRun, by_tag, scalars_by_tag

Service = Literal["wandb", "trackio", "mlflow"]
TITLES: dict[str, str] = {"wandb": "Weights & Biases", "trackio": "Trackio", "mlflow": "MLflow"}
_VIDEOS = (".gif", ".mp4")
_IDS = "trackers.json"


STEP = "environment_steps"
STEPS_OF_A_PART = 1_000_000_000
"""Distance of the first `_step` of an offline run from that of its next part."""
INIT_SECONDS = 30.0
"""Time after which Weights & Biases stops trying to connect."""
FLUSH_SECONDS = 10.0


@parameter_class
class TrackerParameters:
    """An experiment tracker that takes a run's records.

    Its address and the account are configured as the service's documentation describes: by
    `wandb login`, `WANDB_MODE=offline`, `TRACKIO_DIR`, `MLFLOW_TRACKING_URI` and others.
    """

    service: Service
    """The service: wandb, trackio or mlflow, each an extra of that name."""
    project: NonEmpty[str] = "coach_rl"
    """The project; MLflow calls it an experiment."""
    tags: tuple[str, ...] = ()
    """Tags besides the experiment's name, its preset and its level. Trackio has no tags; there they
    are part of the run's config."""

    def __str__(self) -> str:
        return TITLES[self.service]

    def check(self) -> None:
        """Raise `ConfigurationError` if the package is missing, or no account is logged in."""
        if importlib.util.find_spec(self.service) is None:
            raise ConfigurationError(
                f"{self} needs the package {self.service}, which is not installed; "
                f"{how_to_install(self.service)}"
            )
        if self.service == "wandb":
            require_login()

    def build(self, run: SinkRun) -> Sink:
        """A new sink, which continues the tracker's run if this run has been there before."""
        tracked = TrackedRun(
            folder=run.folder, project=self.project, service=self.service, **_described(run, self)
        )
        if self.service == "mlflow":
            return MlflowSink(tracked)

        return WandbSink(tracked)


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """The description of a run for its tracker."""

    folder: Path
    """The run's folder."""
    service: Service
    """The tracker."""
    project: str
    """The project."""
    name: str
    """The run's name there."""
    group: str
    """The experiment's name."""
    tags: tuple[str, ...]
    """Tags."""
    config: Mapping[str, object]
    """Seed, panel and resolved parameters, by dotted path."""

    def remembered_id(self) -> str | None:
        """The id that `remember` was given by this run in an earlier part; None before."""
        found = self._ids().get(f"{self.service}:{self.project}")
        return None if found is None else str(found)

    def remember(self, tracker_id: str) -> None:
        """Write the tracker's id of this run into the run's folder."""
        ids = {**self._ids(), f"{self.service}:{self.project}": tracker_id}
        with replacing(self.folder / _IDS) as new:
            new.write_text(json.dumps(ids, indent=2) + "\n", encoding="utf-8")

    def new_videos(self, sent: set[Path]) -> list[Path]:
        """The videos in the run's folder that were not sent before; they are added to these."""
        found = {each for each in self.folder.glob("videos/*") if each.suffix in _VIDEOS} - sent
        sent |= found
        return sorted(found)

    def _ids(self) -> dict[str, str]:
        file = self.folder / _IDS
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else {}


def _described(run: SinkRun, tracker: TrackerParameters) -> dict[str, Any]:
    manifest = run.manifest
    name, level, preset = manifest["name"], manifest["level"], manifest["preset"]
    config = {
        "seed": manifest["task"]["seed"],
        "level": level,
        **dict(_flat(manifest["panel"], "panel")),
        **dict(_flat(manifest["parameters"], "")),
        **({} if preset is None else {"preset": preset["name"]}),
    }
    tags = (name, level, *(() if preset is None else (preset["name"],)), *tracker.tags)
    return {
        "name": f"{name} {run.folder.name}",
        "group": name,
        "tags": tuple(dict.fromkeys(tags)),
        "config": config,
    }


def _flat(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The values of a JSON tree by dotted path; a tagged object also by the name of its class."""
    match value:
        case dict():
            for key, part in value.items():
                if key.startswith("$"):
                    yield path or "parameters", str(part).rpartition(":")[2]
                else:
                    yield from _flat(part, f"{path}.{key}" if path else key)
        case list():
            for number, part in enumerate(value):
                yield from _flat(part, f"{path}.{number}")
        case _:
            yield path, value


class WandbSink:
    """Logs scalars and pictures of every record, and the videos that appear in the run's folder.

    Weights & Biases accepts only steps that grow. A resumed run repeats some steps, and a
    background evaluation belongs to earlier ones, so there the environment steps are a metric by
    which all others are drawn. Offline, each part of a run numbers its rows for itself: a
    later part begins behind all earlier ones, or sending it would replace their rows.

    Args:
        tracked: The run.
    """

    def __init__(self, tracked: TrackedRun) -> None:
        self._tracked, self._sent = tracked, {*tracked.new_videos(set())}
        self._module: Any = importlib.import_module(tracked.service)
        self._rows: Iterator[int | None] = repeat(None)
        """Numbers of the rows to come; None where Weights & Biases gives them itself."""
        known = tracked.remembered_id()
        self._run = self._wandb_run(known) if tracked.service == "wandb" else self._trackio_run()

    def write(self, record: LogRecord) -> None:
        scalars: dict[str, object] = dict(scalars_by_tag(record))
        for tag, image in by_tag(record, record.images).items():
            scalars[tag] = self._module.Image(image)
        if scalars:
            self._log(scalars, record.environment_steps)
        if record.kind in ("checkpoint", "final_evaluation"):
            self._send_videos(record.environment_steps)

    def close(self) -> None:
        if self._run is not None:
            self._send_videos(None)
            self._run.finish()
            self._run = None

    def _wandb_run(self, known: str | None) -> Any:
        tracked = self._tracked
        if known is None:
            tracked.remember(known := uuid.uuid4().hex[:12])
        parts = len([*tracked.folder.glob(f"wandb/offline-run-*-{glob.escape(known)}")])
        if parts:
            self._rows = count(parts * STEPS_OF_A_PART)
            warn(
                f"this run has {parts + 1} offline parts in {tracked.folder / 'wandb'}; send them "
                "with `wandb sync`, the earliest first (with --append where your version has it), "
                "or a later part may replace an earlier one"
            )
        run = self._module.init(
            project=tracked.project,
            name=tracked.name,
            group=tracked.group,
            id=known,
            resume="allow",
            reinit="create_new",
            tags=[tag[:64] for tag in tracked.tags],  # more is refused
            dir=str(tracked.folder),
            settings=self._module.Settings(console="off", init_timeout=INIT_SECONDS),
        )
        run.config.update(dict(tracked.config), allow_val_change=True)
        run.define_metric(STEP, hidden=True)
        run.define_metric("*", step_metric=STEP)
        return run

    def _trackio_run(self) -> Any:
        """A run of Trackio, which continues the one of the same name."""
        tracked = self._tracked
        tracked.remember(tracked.name)
        return self._module.init(
            project=tracked.project,
            name=tracked.name,
            group=tracked.group,
            resume="allow",
            embed=False,
            config={**tracked.config, "tags": list(tracked.tags)},
        )

    def _log(self, values: Mapping[str, object], step: int) -> None:
        if self._tracked.service == "wandb":
            self._run.log({**values, STEP: step}, step=next(self._rows))
        else:
            self._run.log(values, step=step)

    def _send_videos(self, step: int | None) -> None:
        for video in self._tracked.new_videos(self._sent):
            shown = self._module.Video(str(video), format=video.suffix.removeprefix("."))
            self._log({f"videos/{video.stem}": shown}, step or 0)


def require_login() -> None:
    """Raise `ConfigurationError` if Weights & Biases would prompt for a key."""
    import wandb

    if os.environ.get("WANDB_MODE", "online") != "online" or wandb.login(prompt=False):
        return
    raise ConfigurationError(
        "Weights & Biases has no API key here; log in with `wandb login`, or set "
        "WANDB_MODE=offline, which logs into the run's folder, for `wandb sync` later"
    )


MOST_METRICS, MOST_PARAMS, MOST_CHARACTERS = 1000, 100, 500
"""MLflow's bounds: metrics and parameters sent at once, characters of a parameter's value."""


class MlflowSink:
    """Logs scalars and pictures of every record, and the videos that appear in the run's folder.

    Metrics are sent together: after ten seconds, at a checkpoint, and where there are a thousand.

    Args:
        tracked: The run. Its project is MLflow's experiment.
    """

    def __init__(self, tracked: TrackedRun) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._tracked, self._sent = tracked, {*tracked.new_videos(set())}
        self._client: Any = MlflowClient()
        self._make_metric: Callable[..., object] = Metric
        self._metrics: list[object] = []
        self._flushed = time.monotonic()
        known = tracked.remembered_id()
        if known is None:
            self._run_id = self._new_run()
        else:
            self._client.update_run(known, status="RUNNING")
            self._run_id = known
        self._is_open = True

    def write(self, record: LogRecord) -> None:
        now = int(time.time() * 1000)
        self._metrics += [
            self._make_metric(_allowed(tag), value, now, record.environment_steps)
            for tag, value in scalars_by_tag(record).items()
        ]
        for tag, image in by_tag(record, record.images).items():
            file = f"images/step_{record.environment_steps}_{_allowed(tag).replace('/', '_')}.png"
            self._client.log_image(self._run_id, image, file)
        is_late = time.monotonic() - self._flushed >= FLUSH_SECONDS
        is_milestone = record.kind in ("checkpoint", "final_evaluation")
        if is_late or is_milestone or len(self._metrics) >= MOST_METRICS:
            self._flush()
        if is_milestone:
            self._send_videos()

    def close(self) -> None:
        if self._is_open:
            self._flush()
            self._send_videos()
            self._client.set_terminated(self._run_id)
            self._is_open = False

    def _new_run(self) -> str:
        from mlflow.entities import Param

        client, tracked = self._client, self._tracked
        experiment = client.get_experiment_by_name(tracked.project)
        found = client.create_experiment(tracked.project) if experiment is None else None
        run = client.create_run(
            found or experiment.experiment_id,
            run_name=tracked.name,
            tags={"experiment": tracked.group, **{tag: "" for tag in tracked.tags}},
        )
        run_id = str(run.info.run_id)
        params = [
            Param(_allowed(path), str(value)[:MOST_CHARACTERS])
            for path, value in tracked.config.items()
        ]
        for begin in range(0, len(params), MOST_PARAMS):
            client.log_batch(run_id, params=params[begin : begin + MOST_PARAMS])
        tracked.remember(run_id)
        return run_id

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        for begin in range(0, len(self._metrics), MOST_METRICS):
            batch = self._metrics[begin : begin + MOST_METRICS]
            self._client.log_batch(self._run_id, metrics=batch)
        self._metrics.clear()

    def _send_videos(self) -> None:
        for video in self._tracked.new_videos(self._sent):
            self._client.log_artifact(self._run_id, str(video), "videos")


def _allowed(name: str) -> str:
    """A name with `_` for the characters that MLflow refuses."""
    return re.sub(r"[^\w\-. :/]", "_", name)
