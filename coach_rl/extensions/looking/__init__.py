"""Tools that examine a run: inspections of its data, profiles, histograms, trackers.

May import all but other extensions that it does not need. `inspections` describes an inspection and
observes points of the graph, `inspector` has its checks, `inspection_text` reads what users type;
`profile` and `histograms` are parts of a run; `trackers` and `notebook` are sinks. Start with
`inspections`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.looking.histograms import HistogramParameters
    from coach_rl.extensions.looking.inspections import InspectParameters
    from coach_rl.extensions.looking.notebook import NotebookSink
    from coach_rl.extensions.looking.profile import ProfileParameters, RunProfile
    from coach_rl.extensions.looking.profiler import Profile, Profiler
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "HistogramParameters", "InspectParameters", "NotebookSink", "Profile", "ProfileParameters",
    "Profiler", "RunProfile",
]  # fmt: skip
