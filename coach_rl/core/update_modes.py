"""The ways to run a gradient step, and what each of them needs of the machine."""

import os
import shutil
from typing import Literal

from coach_rl.core.errors import require
from coach_rl.core.parts import walk

UpdateMode = Literal["auto", "eager", "compiled", "captured"]


def compiler_present() -> bool:
    """Return whether torch.compile finds a C++ compiler: `$CXX`, else `g++`, on the PATH."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def update_modes(agent: object) -> dict[str, str]:
    """Modes of an agent's gradient steps, by its name, and by that of a part with own steps.

    The mode, e.g. `captured`, followed by the reason in brackets where `auto` stands for another
    one on this device.
    """
    modes = {}
    for part in walk(agent):
        if isinstance(mode := getattr(part.value, "updates", None), str):
            of = part.name.removesuffix("engine").rstrip("_")
            modes[f"{part.agent.name}/{of}".rstrip("/")] = mode
    return modes


def cannot_run(mode: UpdateMode, device: str) -> str | None:
    """Return why steps cannot run in this mode here; None if they can.

    Args:
        mode: The way to run a step.
        device: Where networks live, e.g. `cuda:0`.
    """
    on_cuda = device.startswith("cuda")
    if mode == "compiled" and on_cuda:
        return f"compiles for the CPU and this agent is on '{device}'"
    if mode == "compiled" and not compiler_present():
        return "needs a C++ compiler and none is on the PATH (g++ is one)"
    if mode == "captured" and not on_cuda:
        return f"records a CUDA graph and this agent is on '{device}'"
    return None


def check_mode(mode: UpdateMode, device: str) -> None:
    """Raise `ParameterError` where steps cannot run in this mode on the device."""
    reason = cannot_run(mode, device)
    others = "'auto', 'captured' or 'eager'" if device.startswith("cuda") else "'auto' or 'eager'"
    require(reason is None, f"update_mode='{mode}' {reason}; use {others}")
