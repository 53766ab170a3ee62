"""Sub-goals further away, and judged more strictly, the more of them the low level reaches."""

from two_levels import SMALL, Panel, stack

import coach_rl as rl

FURTHER = rl.SuccessSchedule(values=(0.2, 0.4, 0.7, 1.0), advance=0.6, retreat=0.1, over=10)
STRICTER = rl.LinearSchedule(start=3.0, end=1.0)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Evaluations judge by the thresholds of the goal space, over today's reach."""
    hindsight = rl.HindsightParameters(goal_ends_episode=True)
    memory = rl.ReplayMemoryParameters(capacity=50_000, relabelling=hindsight)
    low = {
        "agent": rl.TD3AgentParameters(**SMALL, memory=memory),
        "changes": (rl.Curriculum(threshold=STRICTER, reach=FURTHER),),
    }
    return stack(panel, low=low)
