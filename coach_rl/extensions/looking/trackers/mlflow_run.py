"""Runs of MLflow."""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coach_rl.core.records import Array
from coach_rl.extensions.looking.trackers.tracker import TrackedRun, TrackerRun

ID = "coach_rl_run"
"""The tag with our id."""
FLUSH_SECONDS = 10.0
MOST_METRICS = 1000
"""Metrics that MLflow takes at once."""


class MlflowRun(TrackerRun):
    """A run of MLflow, whose experiments are our projects.

    Metrics are sent together: after ten seconds, at a checkpoint, and where there are a thousand.
    """

    def __init__(self, run: TrackedRun) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._client: Any = MlflowClient()
        self._make_metric: Callable[..., object] = Metric
        self._metrics: list[object] = []
        self._flushed = time.monotonic()
        experiment = self._client.get_experiment_by_name(run.project)
        place = (
            experiment.experiment_id if experiment else self._client.create_experiment(run.project)
        )
        found = self._client.search_runs([place], f"tags.{ID} = '{run.id}'")
        self._id = found[0].info.run_id if found else self._new_run(run, place)
        self._client.update_run(self._id, status="RUNNING")

    def log(self, scalars: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        self._metrics += [
            self._make_metric(_allowed(tag), value, now, step) for tag, value in scalars.items()
        ]
        is_late = time.monotonic() - self._flushed >= FLUSH_SECONDS
        if is_late or len(self._metrics) >= MOST_METRICS:
            self.flush()

    def log_image(self, name: str, image: Array, step: int) -> None:
        file = f"images/step_{step}_{_allowed(name).replace('/', '_')}.png"
        self._client.log_image(self._id, image, file)

    def log_video(self, file: Path, step: int) -> None:
        del step  # the file's name begins with it
        self._client.log_artifact(self._id, str(file), "videos")

    def flush(self) -> None:
        self._flushed = time.monotonic()
        self._client.log_batch(self._id, metrics=self._metrics)
        self._metrics = []

    def finish(self) -> None:
        self.flush()
        self._client.set_terminated(self._id)

    def _new_run(self, run: TrackedRun, experiment: str) -> str:
        from mlflow.entities import Param

        tags = {**dict.fromkeys(run.tags, ""), "experiment": run.group, ID: run.id}
        made = self._client.create_run(experiment, run_name=run.name, tags=tags)
        params = [Param(_allowed(path), str(value)) for path, value in run.config.items()]
        self._client.log_batch(made.info.run_id, params=params)
        return str(made.info.run_id)


def _allowed(name: str) -> str:
    """A name with `_` for the characters that MLflow refuses."""
    return re.sub(r"[^\w\-. :/]", "_", name)
