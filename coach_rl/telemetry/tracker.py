"""Experiment trackers: services that keep the numbers, parameters and videos of runs.

BasicGraphParameters(..., sinks=(TrackerParameters(service="wandb", project="walking"),))

Each shows the same names by the same environment steps as TensorBoard.
"""

import importlib.util
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.file_writing import replacing
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.telemetry.sinks import Sink, SinkRun

Service = Literal["wandb", "trackio", "mlflow"]
TITLES: dict[str, str] = {"wandb": "Weights & Biases", "trackio": "Trackio", "mlflow": "MLflow"}
_VIDEOS = (".gif", ".mp4")
_IDS = "trackers.json"


@parameter_class
class TrackerParameters:
    """An experiment tracker that takes a run's records.

    Where it is, and who is logged in, is said as the service's own documentation has it: by
    `wandb login`, `WANDB_MODE=offline`, `TRACKIO_DIR`, `MLFLOW_TRACKING_URI` and others.
    """

    service: Service
    """The service: wandb, trackio or mlflow, each an extra of that name."""
    project: NonEmpty[str] = "coach_rl"
    """The project; MLflow calls it an experiment."""
    tags: tuple[str, ...] = ()
    """Tags besides the experiment's name, its preset and its level. Trackio has no tags; there they
    stand in the run's config."""

    def __str__(self) -> str:
        return TITLES[self.service]

    def check(self) -> None:
        """Raise `ConfigurationError` if the package is missing, or nobody is logged in."""
        if importlib.util.find_spec(self.service) is None:
            raise ConfigurationError(
                f"{self} needs the package {self.service}, which is not installed; "
                f"{how_to_install(self.service)}"
            )
        if self.service == "wandb":
            from coach_rl.telemetry.wandb import require_login

            require_login()

    def build(self, run: SinkRun) -> Sink:
        """A new sink, which continues the tracker's run if this run has been there before."""
        tracked = TrackedRun(
            folder=run.folder, project=self.project, service=self.service, **_described(run, self)
        )
        if self.service == "mlflow":
            from coach_rl.telemetry.mlflow import MlflowSink

            return MlflowSink(tracked)
        from coach_rl.telemetry.wandb import WandbSink

        return WandbSink(tracked)


@dataclass(frozen=True, kw_only=True)
class TrackedRun:
    """A run as its tracker shows it."""

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

    def videos(self) -> set[Path]:
        """The videos in the run's folder."""
        return {each for each in self.folder.glob("videos/*") if each.suffix in _VIDEOS}

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
