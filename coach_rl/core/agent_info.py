"""Names of the info arrays that report on each agent of a multi-agent environment.

`agents/<name>/reward` [R] is the agent's own reward of the step; a level adds it up for the level
above, as it does the common reward. `agents/<name>/terminated` and `agents/<name>/truncated` [R]
say how its own episode ended; they are true in that step, and may stay true until the real episode
is over. To the level above, a level reports whether they were true in any step of its decision.
"""

from collections.abc import Mapping

from coach_rl.core.records import Array

AGENTS = "agents"
"""The info under which each agent has its place."""
REWARD, TERMINATED, TRUNCATED = "reward", "terminated", "truncated"


def agent_info(name: str, what: str) -> str:
    """The name of an info array about one agent, e.g. `agents/left/reward`."""
    return f"{AGENTS}/{name}/{what}"


def is_agent_reward(key: str) -> bool:
    """Return whether an info array is the own reward of an agent."""
    return key.startswith(f"{AGENTS}/") and key.endswith(f"/{REWARD}")


def is_agent_end(key: str) -> bool:
    """Return whether an info array says where an agent's own episode ended."""
    return key.startswith(f"{AGENTS}/") and key.endswith((f"/{TERMINATED}", f"/{TRUNCATED}"))


def agent_rewards(info: Mapping[str, Array]) -> dict[str, Array]:
    """Every agent's own reward, [R] each, by the agent's name; empty where there is but one."""
    before, after = f"{AGENTS}/", f"/{REWARD}"
    return {
        name.removeprefix(before).removesuffix(after): values
        for name, values in info.items()
        if is_agent_reward(name)
    }
