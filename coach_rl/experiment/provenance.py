"""What a run was made with: versions, the state of the source, the hardware."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import torch

from coach_rl.experiment.strict_json import Json

PACKAGES = ("coach-rl", "torch", "numpy", "gymnasium", "mujoco", "safetensors")
"""Whose versions may change a run's numbers."""

_GIT_SECONDS = 10


def made_with() -> Json:
    """What a manifest says of this process: versions, the state of the source, the hardware."""
    return {
        "versions": versions(),
        "git": {
            "working_directory": git_state(Path.cwd()),
            "coach_rl": git_state(Path(__file__).parent),
        },
        "hardware": hardware(),
    }


def changes(then: Json, now: Json) -> list[str]:
    """What may change a run's numbers and is not what it was, e.g. "torch 2.12.0, now 2.13.0".

    Args:
        then: What `made_with` returned for an earlier part of the run.
        now: What it returns for this process.
    """
    before = {**then["versions"], "processor": then["hardware"]["cpu"]}
    after = {**now["versions"], "processor": now["hardware"]["cpu"]}
    return [
        f"{name} {before[name]}, now {after.get(name)}"
        for name in before
        if before[name] != after.get(name)
    ]


def versions() -> dict[str, str | None]:
    """Versions of Python and the packages above; None where one is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def git_state(folder: Path) -> Json:
    """Commit of the checkout `folder` lies in, and whether files differ; None outside of one."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def hardware() -> Json:
    """Processor, cores, memory in bytes, GPUs, operating system."""
    gpus = range(torch.cuda.device_count())
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": [torch.cuda.get_device_name(index) for index in gpus],
        "system": platform.platform(),
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says, None where it is not installed, too slow, or `folder` is no checkout."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
