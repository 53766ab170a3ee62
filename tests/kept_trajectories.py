"""What the memories of an agent and of the agents in it hold."""

from typing import Any

from coach_rl.core.parts import walk
from coach_rl.core.records import Array


def trajectories_of(agent: Any) -> dict[str, Array]:
    """The contents of an agent's memory, by the paths of `memories.batches.shown_as`.

    Those of an agent in it are below `/agents/<name>`, [N, T, ...] each: every memory has its own
    T and `/agents/<name>/mask`. Empty where nothing is kept.
    """
    found: dict[str, Array] = {}
    for part in walk(agent):
        if part.name == "memory" and len(part.value):
            below = "".join(f"/agents/{name}" for name in part.members[-1:])
            for path, values in part.value.trajectories(part.agent.name).items():
                is_below = not below or path.startswith(f"{below}/")
                found[path if is_below else f"{below}{path}"] = values
    return found
