"""Settings of a process: torch's, checked around an environment's calls, and its processors.

watch = SettingsWatch("my_module:MyEnv")
with watch:                                     # raises EnvironmentFault where they have changed
    env.step(action)
"""

import os
import sys
import warnings
from types import ModuleType, TracebackType
from typing import Any

from coach_rl.core.errors import CoachWarning, EnvironmentFault
from coach_rl.core.level_name import shown_level

_SETTINGS = (
    ("the default dtype", "get_default_dtype", "set_default_dtype", True),
    ("whether gradients are computed", "is_grad_enabled", "set_grad_enabled", True),
    ("the number of threads", "get_num_threads", "set_num_threads", False),
    (
        "the use of deterministic algorithms",
        "are_deterministic_algorithms_enabled",
        "use_deterministic_algorithms",
        False,
    ),
)
"""Name, getter and setter of torch's settings, and whether a change would end in errors elsewhere.
Each getter takes some 40 ns."""
_DEVICE = ("the default device", "get_default_device", "set_default_device", True)
"""Its getter takes 9 microseconds, so it is watched where environments are made and reset."""


class SettingsWatch:
    """A context for an environment's code, which restores torch's settings afterwards.

    Args:
        level: The environment's name.
        with_device: Whether to watch the default device as well.
    """

    def __init__(self, level: str, *, with_device: bool = False) -> None:
        self._level = level
        self._settings = (*_SETTINGS, _DEVICE) if with_device else _SETTINGS
        self._before: tuple[Any, ...] = ()
        """Values on entering; empty where torch has not been imported."""
        self._warned: set[str] = set()

    def __enter__(self) -> None:
        torch = sys.modules.get("torch")
        self._before = () if torch is None else self._values(torch)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore changed settings.

        Raises:
            EnvironmentFault: A setting has changed that makes learning impossible.
        """
        if not self._before:
            return
        torch = sys.modules["torch"]
        after = self._values(torch)
        if after == self._before:
            return
        wrong = []
        for (name, _, setter, is_wrong), then, now in zip(
            self._settings, self._before, after, strict=True
        ):
            if then != now:
                is_usual_device = setter == "set_default_device" and then.type == "cpu"
                getattr(torch, setter)(None if is_usual_device else then)
                wrong += [f"{name} from {then} to {now}"] if is_wrong else []
                if not is_wrong and name not in self._warned:
                    self._warned.add(name)
                    warnings.warn(
                        f"'{shown_level(self._level)}' changed torch's settings for the whole "
                        f"process: {name} from {then} to {now}; it is put back after each call",
                        CoachWarning,
                        stacklevel=3,
                    )
        if wrong and error is None:
            raise EnvironmentFault(
                f"'{shown_level(self._level)}' changed torch's settings for the whole process: "
                f"{', '.join(wrong)}; put them back before the environment returns (for gradients: "
                "`with torch.no_grad():`), or use vectorization='subprocess'"
            )

    def _values(self, torch: ModuleType) -> tuple[Any, ...]:
        return tuple([getattr(torch, getter)() for _, getter, _, _ in self._settings])


def usable_processors() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
