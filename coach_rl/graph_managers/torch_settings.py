"""Torch's settings of a run: device, threads, precision."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import with_values
from coach_rl.core.runtime import DivergenceParameters, Runtime


@contextmanager
def torch_settings(runtime: Runtime) -> Iterator[None]:
    """Set torch's threads and precision to the run's inside, and put them back afterwards.

    Torch keeps both for the whole process. Setting them costs microseconds.
    """
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    assert runtime.threads is not None, "resolved by now"
    torch.set_num_threads(runtime.threads)
    torch.set_float32_matmul_precision(runtime.matmul_precision)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


def resolved(runtime: Runtime, threads: int, divergence: DivergenceParameters) -> Runtime:
    """The runtime of an experiment: on a device that exists, with its threads and divergence."""
    return with_values(
        runtime,
        threads=threads if runtime.threads is None else runtime.threads,
        device=resolved_device(runtime.device),
        divergence=divergence,
    )


def with_threads(runtime: Runtime, threads: int) -> Runtime:
    """The runtime; where it has no number of threads, with that of the experiment."""
    return replace(runtime, threads=threads) if runtime.threads is None else runtime


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
            f"device '{device}' requested, but there are {available} GPUs; use cpu"
        )
    return device
