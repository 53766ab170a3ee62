"""An environment that moves its goal within an episode, below a level of several agents."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.groups.agent_group import AgentGroupParameters, GroupMember
from tests.agents.decisions import stored_by
from tests.agents.test_moving_goals import Chase, check, ddpg, manager, ppo


class PairChase(Chase):
    """The same, moved by two agents: one along each axis."""

    spaces = EnvironmentSpaces(
        observation=Chase.spaces.observation,
        action=spaces.Dict({name: spaces.Box(-1, 1, (1,), np.float32) for name in ("x", "y")}),
    )

    def step(self, state, action, uniform):
        return super().step(state, np.concatenate([action["x"], action["y"]], axis=1), uniform)


def test_the_members_of_a_group_see_the_goal_they_are_rewarded_for():
    group = AgentGroupParameters(
        members=(
            GroupMember(agent=ppo("across"), actions="x"),
            GroupMember(agent=ddpg("up"), actions="y", observations=("observation", "target")),
        )
    )
    graph_manager = manager(group, world=PairChase)
    across, up = (
        stored_by(graph_manager.graph.agents["top"].members[name]) for name in ("across", "up")
    )
    list(graph_manager.train_and_act(EnvironmentSteps(150)))
    assert check(across) > 10
    assert len(up) == len(across)
    assert all(GOAL_KEY not in one.observation for one in up)
