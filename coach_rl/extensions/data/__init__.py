"""Data sets: transitions of a memory out to Minari, and in; runs that learn from them.

May import what graph managers may. `batch_graph` trains an agent from data: `reading` reads them,
`recorded` passes them through the agent's filters, `filled_memory` keeps them out of checkpoints.
`files` and `minari_data` read and write, by `arrays`, `mapping` and `column_cache`; `held_out`
splits episodes, `held_out_losses` measures losses of those held out, `block_filling` fills memories
by whole episodes, `prefill` from Minari, `data_command` has the commands.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.data.batch_graph import (
        BatchGraphManager,
        BatchGraphParameters,
        BatchHierarchyParameters,
        DataSourceParameters,
        batch_schedule,
    )
    from coach_rl.extensions.data.files import read_data
    from coach_rl.extensions.data.held_out import HeldOutParameters
    from coach_rl.extensions.data.held_out_losses import HeldOutLossParameters
    from coach_rl.extensions.data.minari_data import read_minari, write_minari
    from coach_rl.extensions.data.prefill import DataSetParameters
    from coach_rl.extensions.data.recording import RecordingParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "BatchGraphManager",
    "BatchGraphParameters",
    "BatchHierarchyParameters",
    "DataSetParameters",
    "DataSourceParameters",
    "HeldOutLossParameters",
    "HeldOutParameters",
    "RecordingParameters",
    "batch_schedule",
    "read_data",
    "read_minari",
    "write_minari",
]
