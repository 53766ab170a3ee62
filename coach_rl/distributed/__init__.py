"""One run over many processes.

May import core. Start with `torch_processes`: the processes that torchrun has started.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.distributed.torch_processes import joined_processes
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["joined_processes"]
