"""Close views of a run: inspections, profiles, histograms, trackers, curves in a notebook.

May import what running may. `profile` and `histograms` are parts of a run.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.looking.histograms import HistogramParameters
    from coach_rl.extensions.looking.profile import ProfileParameters, RunProfile
    from coach_rl.extensions.looking.profiler import Profile, Profiler
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["HistogramParameters", "Profile", "ProfileParameters", "Profiler", "RunProfile"]
