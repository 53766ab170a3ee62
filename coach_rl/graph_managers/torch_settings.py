"""What torch keeps for the whole process and a task sets for its own work."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from coach_rl.graph_managers.parameters import TaskParameters


@contextmanager
def torch_settings(task: TaskParameters) -> Iterator[None]:
    """Threads and precision are the task's inside, and put back afterwards; costs microseconds."""
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_num_threads(task.threads)
    torch.set_float32_matmul_precision(task.matmul_precision)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)
