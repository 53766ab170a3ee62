"""Size of a memory, checked against what is free before anything is allocated."""

import re
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # has no types
import torch

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.shown_text import readable

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemorySize:
    """Bytes a memory takes when it is full."""

    host: int
    """Bytes in the machine's memory."""
    device: int
    """Bytes on the learner's device, if its columns lie there."""


def check_size(size: MemorySize, *, capacity: int, device: torch.device) -> None:
    """Raise `ConfigurationError` unless so much memory is free.

    Args:
        size: What is needed.
        capacity: Transitions, for the message.
        device: The learner's.
    """
    where = "this machine"
    needed, free = size.host, free_host_bytes()
    if needed <= free and size.device:
        where = str(device)
        needed, free = size.device, free_device_bytes(device)
    if needed > free:
        fitting = int(capacity * free / needed)
        raise ConfigurationError(
            f"a replay memory of {capacity:,} transitions takes {readable(needed)} on {where}, "
            f"where {readable(free)} are free; lower `capacity` (about {fitting:,} would fit), or "
            "keep stacked images once per frame with `frame_stack`"
        )


def free_host_bytes() -> int:
    """Return the bytes this process can still take, within the limit of its control group."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        files = re.search(r"^inactive_file (\d+)$", (CGROUP / "memory.stat").read_text(), re.M)
    except (OSError, ValueError):  # no such control group: the machine is the limit
        return free
    if limit == "max":
        return free
    given_back = int(files[1]) if files else 0  # cached files make room when it is needed
    return min(free, max(0, int(limit) - used + given_back))


def free_device_bytes(device: torch.device) -> int:
    """Return the free bytes of a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_host_bytes()
