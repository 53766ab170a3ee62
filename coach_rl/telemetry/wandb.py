"""Log records in Weights & Biases, or in Trackio, which takes the same calls."""

import glob
import importlib
import os
import uuid
import warnings
from collections.abc import Iterator, Mapping
from itertools import count, repeat
from typing import Any

from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.sinks import scalars_by_tag
from coach_rl.telemetry.tracker import TrackedRun

STEP = "environment_steps"
STEPS_OF_A_PART = 1_000_000_000
"""Distance of the first `_step` of an offline run from that of its next part."""
INIT_SECONDS = 30.0
"""Time after which Weights & Biases gives up connecting."""


class WandbSink:
    """Logs every scalar of every record, and the videos that appear in the run's folder.

    Weights & Biases accepts only steps that grow. A resumed run logs some steps again, and a
    background evaluation is of earlier ones, so there the environment steps are a metric of their
    own by which all others are drawn. Offline, each part of a run numbers its rows for itself: a
    later part begins behind all earlier ones, or sending it would replace their rows.

    Args:
        tracked: The run.
    """

    def __init__(self, tracked: TrackedRun) -> None:
        self._tracked, self._sent = tracked, tracked.videos()
        self._module: Any = importlib.import_module(tracked.service)
        self._rows: Iterator[int | None] = repeat(None)
        """Numbers of the rows to come; None where Weights & Biases gives them itself."""
        known = tracked.remembered_id()
        self._run = self._wandb_run(known) if tracked.service == "wandb" else self._trackio_run()

    def write(self, record: LogRecord) -> None:
        """Its scalars."""
        if scalars := scalars_by_tag(record):
            self._log(scalars, record.environment_steps)
        if record.kind in ("checkpoint", "final_evaluation"):
            self._send_videos(record.environment_steps)

    def close(self) -> None:
        """Send what is left, and finish."""
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
            warnings.warn(
                f"this run has {parts + 1} offline parts in {tracked.folder / 'wandb'}; send them "
                "with `wandb sync`, the earliest first (with --append where your version has it), "
                "or a later part may replace an earlier one",
                CoachWarning,
                stacklevel=2,
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
        for video in sorted(self._tracked.videos() - self._sent):
            self._sent.add(video)
            shown = self._module.Video(str(video), format=video.suffix.removeprefix("."))
            self._log({f"videos/{video.stem}": shown}, step or 0)


def require_login() -> None:
    """Raise `ConfigurationError` where Weights & Biases would ask for a key: nothing here asks."""
    import wandb

    if os.environ.get("WANDB_MODE", "online") != "online" or wandb.login(prompt=False):
        return
    raise ConfigurationError(
        "Weights & Biases has no key of yours; log in with `wandb login`, or set "
        "WANDB_MODE=offline, which logs into the run's folder, for `wandb sync` later"
    )
