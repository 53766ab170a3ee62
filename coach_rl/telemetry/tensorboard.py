"""Scalars for TensorBoard, by environment steps."""

from pathlib import Path

from tensorboard.compat.proto import summary_pb2  # type: ignore[import-untyped]  # has no types
from torch.utils.tensorboard import SummaryWriter

from coach_rl.telemetry.records import LogRecord

FLUSH_SECONDS = 10


class TensorBoardSink:
    """Writes every scalar of every record; on disk after ten seconds or at a checkpoint.

    An agent's scalars stand under `<level>/<agent>/`, so a hierarchy's levels lie side by side.

    Args:
        folder: For the event files; made where there is none.
        resumed_at: Environment steps at which a resumed run continues; None for a new one. A
            TensorBoard that has been open since before is made to forget what the stopped run
            logged after them. On disk that must be gone already, see `experiment.run_folder`.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._forgotten_from = None if resumed_at is None else resumed_at + 1
        self._writer: SummaryWriter | None = None
        """None until the first scalars: a run without any has no event file."""

    def write(self, record: LogRecord) -> None:
        """Its scalars."""
        if not record.scalars:
            return
        if self._writer is None:
            self._writer = SummaryWriter(
                str(self._folder), purge_step=self._forgotten_from, flush_secs=FLUSH_SECONDS
            )
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
        if record.kind == "checkpoint":  # which notes how long the file is
            events.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()
