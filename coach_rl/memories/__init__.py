"""Where transitions are kept until they are learned from.

Struct-of-arrays storage that knows no keys in advance. May import core only. Start with
`rollout_memory`.
"""

from coach_rl.memories.rollout_memory import RolloutMemory, RowGrid

__all__ = ["RolloutMemory", "RowGrid"]
