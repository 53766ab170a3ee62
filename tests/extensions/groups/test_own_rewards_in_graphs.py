"""Rewards of levels that form a graph, which read no level above."""

from dataclasses import replace

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from tests.agents.test_own_goal_rewards import made, wanted_above, with_rewards
from tests.refusals import check_refused


def test_reward_that_reads_the_level_above_is_refused_in_a_graph():
    graph = rl.LevelGraph(below={"top": ("low",)}, preempt=("top",))
    described = replace(with_rewards(wanted_above), arrangement=graph)
    check_refused(
        lambda: made(described),
        ConfigurationError,
        "level 'low': GoalSpace.reward (wanted_above) takes a view of the level above, and there",
    )
