"""Recurrent layers of torsos: GRU, LSTM, minGRU, and attention over a window.

May import architectures and core. Start with `gated_recurrence`; what a layer has to be is
`architectures.recurrence`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.recurrent_layers.attention import Attention
    from coach_rl.extensions.recurrent_layers.gated_recurrence import GRU, LSTM
    from coach_rl.extensions.recurrent_layers.linear_recurrence import MinGRU
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["GRU", "LSTM", "Attention", "MinGRU"]
