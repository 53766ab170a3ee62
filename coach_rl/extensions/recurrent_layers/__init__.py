"""Recurrent networks: GRU, LSTM, minGRU and attention over a window, and learning from sequences.

A layer of a torso keeps a state from one observation of an episode to the next. It brings the
stage by which its agent keeps the state with each decision; PPO and replay memories then draw
sequences of transitions.

May import agents, memories, architectures and core. Start with `recurrence`, what a layer has to
be, then `stage`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.recurrent_layers.attention import Attention
    from coach_rl.extensions.recurrent_layers.gated_recurrence import GRU, LSTM
    from coach_rl.extensions.recurrent_layers.linear_recurrence import MinGRU
    from coach_rl.extensions.recurrent_layers.recurrent_agents import recurrent_agent
    from coach_rl.extensions.recurrent_layers.sequences import SequenceParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["GRU", "LSTM", "Attention", "MinGRU", "SequenceParameters", "recurrent_agent"]
