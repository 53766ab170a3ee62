"""Modes: ways to run a gradient step, equal to rounding.

`eager` runs the step as it is. The others are variants of `update_mode` in the tables of
extensions, see `core.variants`. `auto` is the first of them that can run on the device, where the
updates that are planned repay its preparation; elsewhere it is eager.
"""

import warnings
from dataclasses import dataclass
from typing import Protocol

import torch

from coach_rl.architectures.gradient_step import Batch, GradientStep, Step
from coach_rl.core.errors import CoachWarning, ConfigurationError, ParameterError
from coach_rl.core.runtime import FIRST_STEP, Runtime
from coach_rl.core.variants import named_variants

AUTO = "auto"
EAGER = "eager"
REPAID_AFTER = 40_000
"""Updates after which the preparation of a mode has repaid itself on the CPU: compiling takes about
25 s, and saves 0.6 ms per update."""


class UnableToRun(Exception):
    """A step cannot be run in a mode, and nothing has changed; the message begins "cannot be"."""


class UpdateMode(Protocol):
    """A way to run gradient steps; made without arguments."""

    activity: str
    """Name of the slow work before the first step, such as "compiling"."""

    def cannot_run(self, device: str) -> str | None:
        """The reason why steps cannot run on a device; None if they can.

        Messages have the mode in front of it: "'captured' records a CUDA graph and ...".

        Args:
            device: Where networks live, e.g. `cuda:0`.
        """
        ...

    def prepared(self, step: GradientStep[Batch], device: torch.device) -> Step[Batch]:
        """The step in this mode.

        Where it turns out that the step cannot be run so, its first call raises `UnableToRun`.
        """
        ...


@dataclass(kw_only=True)
class ChosenMode:
    """The mode that an agent's gradient steps run in."""

    name: str
    """The mode; `auto` is resolved."""
    is_auto: bool
    """True if `auto` selected it."""
    device: torch.device
    """The device of the networks."""
    owner: str
    """The agent, for messages."""
    runtime: Runtime
    """The run's settings, which show the preparation of a step."""
    reason: str = ""
    """The reason for another mode than `auto` selects; empty: there is none."""
    is_starting: bool = False
    """True from the preparation of a step until `started`."""

    def prepared(self, step: GradientStep[Batch]) -> Step[Batch]:
        """The step in this mode; eager, with a warning, where that can't run here."""
        reason = cannot_run(self.name, str(self.device))
        if reason is None:
            mode = other_modes()[self.name]
            self.runtime.on_activity(f"{mode.activity}{FIRST_STEP}{self.owner}")
            self.is_starting = True
            return mode.prepared(step, self.device)
        warnings.warn(
            f"this run's update_mode '{self.name}' {reason}; its updates are eager from now on, "
            "equal to rounding",
            CoachWarning,
            stacklevel=4,
        )
        self.reason = f"'{self.name}' {reason}"
        self.name = EAGER
        return step

    def started(self) -> None:
        """Note that the first step has been taken."""
        self.is_starting = False
        self.runtime.on_activity("")

    def fall_back(self, error: UnableToRun) -> None:
        """Switch to eager, with a warning; ConfigurationError where the mode was configured."""
        if not self.is_auto:
            raise ConfigurationError(
                f"{self.owner}: update_mode='{self.name}', but its gradient step {error}; use "
                "'auto' or 'eager', or change the network"
            ) from error
        self.name = EAGER
        self.reason = str(error)
        warnings.warn(
            f"the gradient step of {self.owner} {error}; its updates are eager, with the same "
            "numbers, and slower",
            CoachWarning,
            stacklevel=3,
        )


def other_modes() -> dict[str, UpdateMode]:
    """The modes beside `eager`, by name."""
    return {name: kind() for name, kind in named_variants("update_mode").items()}


def resolved_mode(
    mode: str, device: torch.device, *, planned_updates: int, repaid_after: int
) -> str:
    """The mode, resolved if it is `auto`; ParameterError if it cannot run on the device.

    Args:
        mode: The configured mode.
        device: The device of the networks.
        planned_updates: Gradient steps that the run will take.
        repaid_after: Gradient steps on the CPU after which a mode's preparation has repaid itself.
    """
    if mode != AUTO:
        check_mode(mode, str(device))
        return mode
    if device.type == "cpu" and planned_updates < repaid_after:
        return EAGER
    modes = other_modes().items()
    able = (name for name, each in modes if each.cannot_run(str(device)) is None)
    return next(able, EAGER)


def cannot_run(mode: str, device: str) -> str | None:
    """The reason why steps cannot run in a mode on a device; None if they can.

    Args:
        mode: The mode, or `auto`.
        device: Where networks live, e.g. `cuda:0`.
    """
    if mode in (AUTO, EAGER):
        return None
    modes = other_modes()
    if mode not in modes:
        return "is offered by no installed extension"
    return modes[mode].cannot_run(device)


def check_mode(mode: str, device: str) -> None:
    """Raise `ParameterError` where steps cannot run in this mode on the device."""
    reason = cannot_run(mode, device)
    if reason is not None:
        able = [name for name, each in other_modes().items() if each.cannot_run(device) is None]
        others = ", ".join(f"'{name}'" for name in (AUTO, *able))
        raise ParameterError(f"update_mode='{mode}' {reason}; use {others} or '{EAGER}'")
