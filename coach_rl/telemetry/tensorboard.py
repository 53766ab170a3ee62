"""Scalars for TensorBoard, by environment steps."""

from pathlib import Path

from tensorboard.compat.proto import summary_pb2  # type: ignore[import-untyped]  # has no types
from torch.utils.tensorboard import SummaryWriter

from coach_rl.telemetry.records import LogRecord

FLUSH_SECONDS = 10


class TensorBoardSink:
    """Writes every scalar of every record; on disk after ten seconds or at a checkpoint.

    An agent's scalars stand under `<level>/<agent>/`, so a hierarchy's levels lie side by side.
    Where the folder holds event files already, the run is resumed: TensorBoard is told to forget
    what they say from the first record written here on, because it is said again.

    Args:
        folder: For the event files; made where there is none.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._resumes = any(folder.glob("events.out.tfevents.*"))
        self._writer: SummaryWriter | None = None
        """None until the first scalars, which say from where on to forget."""

    def write(self, record: LogRecord) -> None:
        """Its scalars."""
        if not record.scalars:
            return
        if self._writer is None:
            self._writer = self._open(record.environment_steps)
        prefix = "".join(f"{name}/" for name in (record.level, record.agent) if name)
        summary = summary_pb2.Summary(
            value=[
                summary_pb2.Summary.Value(tag=f"{prefix}{name}", simple_value=value)
                for name, value in record.scalars.items()
            ]
        )
        # One event a record takes half the time of one `add_scalar` for each of three scalars.
        events = self._writer._get_file_writer()  # type: ignore[no-untyped-call]  # torch's
        events.add_summary(summary, record.environment_steps)
        if record.kind == "checkpoint":  # who goes on from it has what was said before it
            events.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()

    def _open(self, environment_steps: int) -> SummaryWriter:
        return SummaryWriter(
            str(self._folder),
            purge_step=environment_steps if self._resumes else None,
            flush_secs=FLUSH_SECONDS,
        )
