"""Recurrent layers by the names that panels of presets give their kinds."""

from coach_rl.core.errors import UnknownNameError
from coach_rl.extensions.recurrent_layers.attention import Attention
from coach_rl.extensions.recurrent_layers.gated_recurrence import GRU, LSTM
from coach_rl.extensions.recurrent_layers.linear_recurrence import MinGRU
from coach_rl.extensions.recurrent_layers.recurrence import RecurrentLayerParameters

SPANNING = {"gru": GRU, "lstm": LSTM, "min_gru": MinGRU}
"""Layers whose gates can start with a span."""
ATTENTION = "attention"


def layer_of_kind(
    kind: str, *, size: int, skip: bool = False, span: int | None = None
) -> RecurrentLayerParameters:
    """A recurrent layer: gru, lstm, min_gru or attention.

    Args:
        kind: Its name.
        size: Numbers in its output.
        skip: Whether its input is part of its output.
        span: As `GRU.span`; attention sees the newest 16 inputs, and has no use for it.
    """
    if kind == ATTENTION:
        return Attention(size=size, skip=skip)
    if kind not in SPANNING:
        raise UnknownNameError("recurrent layer", kind, (*SPANNING, ATTENTION))
    return SPANNING[kind](size=size, skip=skip, span=span)
