"""Settings known only when a run starts: its seed, its device, and how torch computes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

import torch

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive

MatmulPrecision = Literal["highest", "high", "medium"]


@parameter_class
class TaskParameters:
    """Settings known only when a run starts."""

    seed: NonNegative[int] = 0
    """Seed of every random generator of the run, 0 or more."""
    device: str = "auto"
    """Device of the networks: auto (a GPU if there is one), cpu, cuda or cuda:N."""
    matmul_precision: MatmulPrecision = "highest"
    """Precision of float32 matrix products, in PyTorch's words; sums are always float32.

    `highest` takes all 24 bits of the factors. `high` may take TF32's 11 on GPUs. `medium` may take
    bfloat16's 8, on processors and GPUs that multiply those faster; elsewhere it is `highest`.
    What that costs in score: benchmarks/results/off_policy_mujoco.md.
    """
    threads: Positive[int] | None = None
    """Threads of one tensor operation on the CPU; None: those of the experiment. With another
    number, sums of many elements differ in their last digits."""


@contextmanager
def torch_settings(task: TaskParameters) -> Iterator[None]:
    """Set torch's threads and precision to the task's inside, and put them back afterwards.

    Torch keeps both for the whole process. Setting them costs microseconds.
    """
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    assert task.threads is not None, "the task's threads are those of the experiment by now"
    torch.set_num_threads(task.threads)
    torch.set_float32_matmul_precision(task.matmul_precision)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


def with_threads(task: TaskParameters, threads: int) -> TaskParameters:
    """The task; where it has no number of threads, with that of the experiment."""
    return replace(task, threads=threads) if task.threads is None else task


def resolved_device(device: str) -> str:
    """The torch device meant by `auto`, `cpu`, `cuda` or `cuda:N`; checked to exist."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise ConfigurationError(f"device must be auto, cpu, cuda or cuda:N, got '{device}'")
    available = torch.cuda.device_count()
    if kind == "cuda" and int(number or 0) >= available:
        raise ConfigurationError(
            f"device '{device}' asked for, but there are {available} GPUs; use cpu"
        )
    return device
