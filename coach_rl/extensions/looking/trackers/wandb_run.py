"""Runs of Weights & Biases."""

import glob
import os
from collections.abc import Iterator, Mapping
from itertools import count, repeat
from pathlib import Path
from typing import Any

from coach_rl.core.errors import ConfigurationError, warn
from coach_rl.core.records import Array
from coach_rl.extensions.looking.trackers.tracker import TrackedRun, TrackerRun

STEP = "environment_steps"
STEPS_OF_A_PART = 1_000_000_000
"""Distance of the first `_step` of an offline run from that of its next part."""
INIT_SECONDS = 30.0
"""Time after which it stops trying to connect."""


class WandbRun(TrackerRun):
    """A run of Weights & Biases, which accepts only steps that grow.

    A resumed run repeats some steps, and a background evaluation belongs to earlier ones, so the
    environment steps are a metric by which all others are drawn. Offline, each part of a run
    numbers its rows for itself: a later part begins behind all earlier ones, or sending it would
    replace their rows.
    """

    def __init__(self, run: TrackedRun) -> None:
        import wandb

        self._media: Any = wandb
        """The module, for its classes of media."""
        self._rows: Iterator[int | None] = repeat(None)
        """Numbers of the rows to come; None where Weights & Biases gives them itself."""
        parts = len([*run.folder.glob(f"wandb/offline-run-*-{glob.escape(run.id)}")])
        if parts:
            self._rows = count(parts * STEPS_OF_A_PART)
            warn(
                f"this run has {parts + 1} offline parts in {run.folder / 'wandb'}; send them "
                "with `wandb sync`, the earliest first (with --append where your version has it), "
                "or a later part may replace an earlier one"
            )
        self._run: Any = wandb.init(
            project=run.project,
            name=run.name,
            group=run.group,
            id=run.id,
            resume="allow",
            reinit="create_new",
            tags=[tag[:64] for tag in run.tags],  # more is refused
            dir=str(run.folder),
            settings=wandb.Settings(console="off", init_timeout=INIT_SECONDS),
        )
        self._run.config.update(dict(run.config), allow_val_change=True)
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)

    @staticmethod
    def check() -> None:
        """Raise `ConfigurationError` if Weights & Biases would prompt for a key."""
        import wandb

        if os.environ.get("WANDB_MODE", "online") == "online" and not wandb.login(prompt=False):
            raise ConfigurationError(
                "Weights & Biases has no API key here; log in with `wandb login`, or set "
                "WANDB_MODE=offline, which logs into the run's folder, for `wandb sync` later"
            )

    def log(self, scalars: Mapping[str, object], step: int) -> None:
        self._run.log({**scalars, STEP: step}, step=next(self._rows))

    def log_image(self, name: str, image: Array, step: int) -> None:
        self.log({name: self._media.Image(image)}, step)

    def log_video(self, file: Path, step: int) -> None:
        video = self._media.Video(str(file), format=file.suffix.removeprefix("."))
        self.log({f"videos/{file.stem}": video}, step)

    def finish(self) -> None:
        self._run.finish()
