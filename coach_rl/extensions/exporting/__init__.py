"""Exporting: the policy of a run as ONNX graphs that act without this package.

May import core, functional, architectures, agents, filters, graph_managers, configuration and
sessions. Start with `archive`. `teacher` is for `imitation`, to which it is offered.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.exporting.archive import export
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["export"]
