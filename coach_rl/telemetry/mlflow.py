"""Log records in MLflow."""

import re
import time
from collections.abc import Callable
from typing import Any

from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.sinks import scalars_by_tag
from coach_rl.telemetry.tracker import TrackedRun

FLUSH_SECONDS = 10.0
MOST_METRICS, MOST_PARAMS, MOST_CHARACTERS = 1000, 100, 500
"""MLflow's bounds: metrics and parameters sent at once, characters of a parameter's value."""


class MlflowSink:
    """Logs every scalar of every record, and the videos that appear in the run's folder.

    Metrics are sent together: after ten seconds, at a checkpoint, and where there are a thousand.

    Args:
        tracked: The run. Its project is MLflow's experiment.
    """

    def __init__(self, tracked: TrackedRun) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._tracked, self._sent = tracked, tracked.videos()
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
        """Its scalars."""
        now = int(time.time() * 1000)
        self._metrics += [
            self._make_metric(_allowed(tag), value, now, record.environment_steps)
            for tag, value in scalars_by_tag(record).items()
        ]
        is_late = time.monotonic() - self._flushed >= FLUSH_SECONDS
        is_milestone = record.kind in ("checkpoint", "final_evaluation")
        if is_late or is_milestone or len(self._metrics) >= MOST_METRICS:
            self._flush()
        if is_milestone:
            self._send_videos()

    def close(self) -> None:
        """Send what is left, and finish."""
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
        for video in sorted(self._tracked.videos() - self._sent):
            self._sent.add(video)
            self._client.log_artifact(self._run_id, str(video), "videos")


def _allowed(name: str) -> str:
    """A name with `_` for the characters that MLflow refuses."""
    return re.sub(r"[^\w\-. :/]", "_", name)
