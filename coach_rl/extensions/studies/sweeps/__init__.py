"""Sweeps: a search for better settings of a preset, by Optuna, confirmed with fresh seeds.

Start with `search`; `search_space` parses ranges, `trials` keeps the journal and `report` writes
the page.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.studies.sweeps.search import SweepResult, run_sweep
    from coach_rl.extensions.studies.sweeps.sweep import Sweep
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Sweep", "SweepResult", "run_sweep"]
