"""Scalars for TensorBoard, by environment steps."""

from pathlib import Path

from torch.utils.tensorboard import SummaryWriter

from coach_rl.telemetry.records import LogRecord

FLUSH_SECONDS = 10


class TensorBoardSink:
    """Writes every scalar of every record.

    An agent's scalars stand under `<level>/<agent>/`, so a hierarchy's levels lie side by side. A
    resumed run hides what was written after the step it goes on from.

    Args:
        folder: For the event files.
        resumed_at: Environment steps a resumed run goes on from; None for a new run.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        purge = None if resumed_at is None else resumed_at + 1
        self._writer = SummaryWriter(str(folder), purge_step=purge, flush_secs=FLUSH_SECONDS)

    def write(self, record: LogRecord) -> None:
        """Its scalars."""
        prefix = f"{record.level}/{record.agent}/" if record.agent else ""
        for name, value in record.scalars.items():
            self._writer.add_scalar(f"{prefix}{name}", value, record.environment_steps)

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
