"""The use of the machine by a run: processor, memory, GPUs.

sampler = ResourceSampler(every_seconds=10.0)
scalars |= sampler.sample_if_due()              # `resources/...`, empty where none is due
"""

import time
from types import ModuleType
from typing import cast

import psutil  # type: ignore[import-untyped]  # has no types
import torch

MIB = 2**20


class ResourceSampler:
    """Measures this process and its children; there is no thread, only calls.

    Args:
        every_seconds: Least time between two samples; one takes a millisecond or more.
    """

    def __init__(self, *, every_seconds: float = 10.0) -> None:
        self._every_seconds = every_seconds
        self._process = psutil.Process()
        self._sampled_at = time.monotonic()
        self._cpu_seconds, _, _ = self._usage()
        psutil.cpu_percent(percpu=True)  # from here on
        self._nvml = _nvml() if torch.cuda.is_available() else None

    def sample_if_due(self) -> dict[str, float]:
        """The scalars, with the processor's use since the last sample; empty where none is due."""
        now = time.monotonic()
        elapsed = now - self._sampled_at
        if elapsed < self._every_seconds:
            return {}
        cpu_seconds, memory, processes = self._usage()
        used = max(0.0, cpu_seconds - self._cpu_seconds)
        self._sampled_at = now
        self._cpu_seconds = cpu_seconds
        cores = psutil.cpu_percent(percpu=True)  # of the machine, by any process
        scalars = {
            "resources/cpu_percent": 100 * used / elapsed,
            "resources/busiest_core_percent": max(cores, default=0.0),
            "resources/cores_percent": sum(cores) / max(1, len(cores)),
            "resources/memory_mib": memory / MIB,
        }
        if torch.cuda.is_available():
            gpus = range(torch.cuda.device_count())
            held = sum(torch.cuda.memory_allocated(gpu) for gpu in gpus)
            reserved = sum(torch.cuda.memory_reserved(gpu) for gpu in gpus)
            scalars["resources/gpu_memory_mib"] = held / MIB
            scalars["resources/gpu_memory_reserved_mib"] = reserved / MIB
        if self._nvml is not None:
            scalars |= _gpu_usage(self._nvml, processes)
        return scalars

    def _usage(self) -> tuple[float, int, set[int]]:
        """Processor seconds so far, resident bytes now, and the ids, over the process tree."""
        seconds = 0.0
        memory = 0
        processes = set()
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
            except psutil.NoSuchProcess:  # ended since; included in its parent's times
                continue
            # With the times of children that have ended, the sum never forgets what was used.
            seconds += times.user + times.system + times.children_user + times.children_system
            processes.add(process.pid)
        return seconds, memory, processes


def _nvml() -> ModuleType | None:
    """NVIDIA's management library; None without the extra `gpu`, or without a driver."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return cast(ModuleType, pynvml)


def _gpu_usage(nvml: ModuleType, processes: set[int]) -> dict[str, float]:
    """Load and memory of the GPUs on which these processes are; empty if none of them is on any.

    Some drivers, as in containers, do not list the processes of a GPU: then it is empty as well.
    """
    percent = 0.0
    held = []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            own = [
                each.usedGpuMemory
                for each in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
                if each.pid in processes
            ]
            if own:
                held += own
                percent += nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
    except nvml.NVMLError:  # a GPU that doesn't support one of the queries
        return {}
    if not held:
        return {}
    scalars = {"resources/gpu_percent": float(percent)}
    if None not in held:  # not every driver reports the amount
        scalars["resources/gpu_memory_all_mib"] = sum(held) / MIB
    return scalars
