"""Experiment trackers: services that keep the numbers, parameters, pictures and films of runs.

May import core. `tracker` has the interface, `TrackerRun`, and the sink
that writes to every tracker. Each `NAME_run` is the service of that name: deleting the file removes
the service, as nothing else names it. Start with `tracker`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.looking.trackers.tracker import (
        TrackedRun,
        TrackerParameters,
        TrackerRun,
        TrackerSink,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["TrackedRun", "TrackerParameters", "TrackerRun", "TrackerSink"]
