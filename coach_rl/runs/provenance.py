"""Provenance of a run's numbers: versions, the process's settings, the source, the hardware."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import datetime
from pathlib import Path

import torch

from coach_rl.configuration.strict_json import Json

PACKAGES = ("coach-rl", "torch", "numpy", "gymnasium", "mujoco", "safetensors")
"""Packages whose versions may change a run's numbers."""

_GIT_SECONDS = 10


def now() -> str:
    """The time with its zone, to the second."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def made_with() -> Json:
    """Return the manifest's record of this process: versions, settings, source, hardware."""
    return {
        "versions": versions(),
        "settings": settings(),
        "git": {
            "working_directory": git_state(Path.cwd()),
            "coach_rl": git_state(Path(__file__).parent),
        },
        "hardware": hardware(),
    }


def changes_since(then: Json, now: Json) -> list[str]:
    """Return changes that may affect a run's numbers, e.g. "torch 2.12.0, now 2.13.0".

    Args:
        then: What `made_with` returned for an earlier part of the run; older ones lack settings.
        now: What it returns for this process.
    """
    before, after = (
        {
            **part["versions"],
            "processor": part["hardware"]["cpu"],
            **{name.replace("_", " "): value for name, value in part.get("settings", {}).items()},
        }
        for part in (then, now)
    )
    return [
        f"{name} {before[name]}, now {after.get(name)}"
        for name in before
        if before[name] != after.get(name)
    ]


def versions() -> dict[str, str | None]:
    """Versions of Python and the packages above; None where one is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def settings() -> Json:
    """Return settings of the whole process that may affect numbers and are not the run's own."""
    return {
        "numpy_threads": _numpy_threads(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
    }


def git_state(folder: Path) -> Json:
    """Commit of the checkout `folder` lies in, and whether files differ; None outside of one."""
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def hardware() -> Json:
    """Host, processor, cores, memory in bytes, GPUs, operating system."""
    gpus = range(torch.cuda.device_count())
    return {
        "host": platform.node(),
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


def _numpy_threads() -> int | None:
    """Threads of numpy's matrix products, by which OpenBLAS divides large ones."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _git(folder: Path, *arguments: str) -> str | None:
    """Return git's output; None if git is missing or too slow, or `folder` is no checkout.

    Without optional locks: a run killed meanwhile would leave one behind, and git refuse to commit.
    """
    try:
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
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
