"""Memories: transitions are kept here until they are learned from.

`RolloutMemory` for on-policy agents, `ReplayMemory` for off-policy ones: struct-of-arrays, sampled
by chains of small units. May import core only. Start with `batches`
and `replay_memory`, then `ring_store` and `samplers`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.memories.batches import Columns, Minibatch, Rollout, RolloutBatch
    from coach_rl.memories.draws import SingleTransitions
    from coach_rl.memories.parts import (
        DrawParameters,
        MemoryPart,
        MemoryPartParameters,
        PartContext,
        Stored,
    )
    from coach_rl.memories.replay_memory import ReplayMemory
    from coach_rl.memories.replay_parameters import ReplayMemoryParameters, SamplerUnitParameters
    from coach_rl.memories.ring_store import RingStore
    from coach_rl.memories.rollout_memory import RolloutMemory, RowGrid
    from coach_rl.memories.samplers import SamplerChain, SamplerUnit
    from coach_rl.memories.transition_batch import TransitionBatch
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Columns", "DrawParameters", "MemoryPart",
    "MemoryPartParameters", "Minibatch", "PartContext",
    "ReplayMemory", "ReplayMemoryParameters", "RingStore", "Rollout",
    "RolloutBatch", "RolloutMemory", "RowGrid", "SamplerChain", "SamplerUnit",
    "SamplerUnitParameters", "SingleTransitions", "Stored", "TransitionBatch",
]  # fmt: skip
