"""The processes that torchrun has started, the ranks, and what they exchange.

Gradients on a GPU are exchanged by NCCL, everything else by gloo.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from coach_rl.core.errors import ConfigurationError, RunError

MOST_MINUTES = 30
"""Minutes that a rank waits for another one that is still there; it may be evaluating."""

Numbers = npt.NDArray[np.float64]


class Ranks:
    """This process among those that one torchrun command has started.

    Raises:
        ConfigurationError: It was not started by torchrun.
    """

    def __init__(self) -> None:
        if not dist.is_initialized():
            raise ConfigurationError(
                "this run is one of several that average their gradients; start all of them by one "
                "command, `torchrun --nproc-per-node N -m coach_rl ... --parallel`, or leave out "
                "ParallelParameters from its callbacks, and it trains alone"
            )
        self.rank = dist.get_rank()
        """The number of this process, from 0."""
        self.size = dist.get_world_size()
        """The number of processes."""

    def gather(self, numbers: Numbers) -> Numbers:
        """The numbers [K] of every rank, [ranks, K]."""
        rows = [torch.empty(len(numbers), dtype=torch.float64) for _ in range(self.size)]
        with self._answering():
            dist.all_gather(rows, torch.from_numpy(numbers))
        return torch.stack(rows).numpy()

    def average(self, tensor: Tensor) -> None:
        """Replace a tensor by its mean over all ranks, the same to the last bit in each."""
        with self._answering():
            dist.all_reduce(tensor)
        tensor /= self.size

    def everyone(self, value: Any) -> list[Any]:
        """The value of every rank, of any kind."""
        values: list[Any] = [None] * self.size
        with self._answering():
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise RunError(
                f"rank {self.rank}: another rank has ended, or has not answered for "
                f"{MOST_MINUTES} minutes, or has something else to do; its own message has the "
                "cause. All of them resume from their last checkpoint in common"
            ) from error


@contextmanager
def joined() -> Iterator[Ranks]:
    """The connection to the other processes of torchrun.

    Raises:
        ConfigurationError: torchrun has not started this process.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        raise ConfigurationError(
            "--parallel needs torchrun: `torchrun --nproc-per-node 2 -m coach_rl ... --parallel`"
        )
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, timeout=timedelta(minutes=MOST_MINUTES))
    try:
        yield Ranks()
    finally:
        dist.destroy_process_group()
