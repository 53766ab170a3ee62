"""The processes that torchrun has started, connected by torch.distributed.

with joined_processes() as group:       # alone, unless torchrun has started this process
    run_experiment(graph_manager, task, name="halfcheetah", group=group)

Numbers on a GPU travel by NCCL, everything else by gloo. What one process waits for may take the
others as long as it takes, e.g. an evaluation; that one of them has ended shows at once.
"""

import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from coach_rl.core.errors import RunError
from coach_rl.core.runtime import ONE_PROCESS, Announcement, Order, ProcessGroup, Value

PATIENCE = timedelta(days=365)
"""Time that a process waits for the others; one that has ended is not waited for."""
SMALLEST_ROOM = 1 << 12
"""Bytes for each process's value, at first; what does not fit is sent again with more room."""
HEADER = 8
"""Bytes before a value that hold its size."""


class TorchProcesses:
    """This process among those that `torch.distributed` has connected; a `ProcessGroup`."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self._room = SMALLEST_ROOM

    def announce(self, order: Order, *, seconds: float = 0.0, text: str = "") -> None:
        """Broadcast the next order to the other processes, unless this process follows."""
        if self.rank == 0:
            numbers = [float(order), float(len(text.encode())), seconds]
            self._broadcast(torch.tensor(numbers, dtype=torch.float64))
            if text:
                self._broadcast(torch.tensor(list(text.encode()), dtype=torch.uint8))

    def next_order(self) -> Announcement:
        """Wait for what the leading process announces."""
        sent = torch.zeros(3, dtype=torch.float64)
        self._broadcast(sent)
        order, length, seconds = sent.tolist()
        text = torch.zeros(int(length), dtype=torch.uint8)
        if length:
            self._broadcast(text)
        return Announcement(Order(int(order)), seconds, bytes(text.tolist()).decode())

    def gather(self, value: Value) -> list[Value]:
        """Every process's value, by rank; usually in one exchange, as most are of a size."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        size = len(data).to_bytes(HEADER, "little")
        while True:
            sent = torch.zeros(HEADER + self._room, dtype=torch.uint8)
            part = bytearray(size + data[: self._room])
            sent[: len(part)] = torch.frombuffer(part, dtype=torch.uint8)
            parts = [torch.empty_like(sent) for _ in range(self.size)]
            with _connected():
                dist.all_gather(parts, sent)
            whole = [part.numpy().tobytes() for part in parts]
            sizes = [int.from_bytes(each[:HEADER], "little") for each in whole]
            if max(sizes) <= self._room:
                return [
                    pickle.loads(each[HEADER : HEADER + size])
                    for each, size in zip(whole, sizes, strict=True)
                ]
            self._room = 2 * max(sizes)

    def add_up(self, numbers: Tensor) -> None:
        """Replace a tensor by its sum over all processes."""
        with _connected():
            dist.all_reduce(numbers)

    def _broadcast(self, numbers: Tensor) -> None:
        with _connected():
            dist.broadcast(numbers, src=0)


@contextmanager
def joined_processes() -> Iterator[ProcessGroup]:
    """The processes of this run: those that torchrun has started, else this one alone.

    One that leaves before a run is over leaves the others without their connection to it, which is
    the end of the run for them as well.
    """
    if not is_started_by_torchrun() or os.environ["WORLD_SIZE"] == "1":
        yield ONE_PROCESS
        return
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backends, timeout=PATIENCE)
    try:
        yield TorchProcesses()
    finally:
        dist.destroy_process_group()


def is_started_by_torchrun() -> bool:
    """Return whether torchrun has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def _connected() -> Iterator[None]:
    """A connection that breaks is a `RunError` in one line."""
    try:
        yield
    except RuntimeError as error:
        raise RunError(
            "another process of this run has ended, or cannot be reached any more"
        ) from error
