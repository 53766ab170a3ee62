"""The folder of a run: manifest, logs, checkpoints and lock.

May import core, telemetry, graph_managers and configuration. Start with `folder`; `manifest`
describes the run, `checkpoint` writes and reads its state, `keeper` decides when.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.runs.folder import RunFolder
    from coach_rl.runs.manifest import Origin
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Origin", "RunFolder",
]  # fmt: skip
