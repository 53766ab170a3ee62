"""Goal-conditioned IQL, or behaviour cloning, finds ways through mazes from a data set."""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.goals_from_data_tasks import MazeDataPanel, actor_goals
from coach_rl.presets.offline_tasks import from_data


@dataclass(frozen=True, kw_only=True)
class Panel(MazeDataPanel):
    """Settings to change with -cp."""

    algorithm: Literal["gciql", "gcbc"] = "gciql"
    """gciql: values of goals, and a policy by them. gcbc: the policy clones what led to goals."""
    expectile: float = 0.9
    """The nearer to 1, the nearer values are to those of the best action in the data."""
    extraction: Literal["ddpg_bc", "awr"] = "ddpg_bc"
    """Loss of the policy: ddpg_bc climbs the critic near the data, awr clones by advantage."""
    cloning: float = 0.003
    """ddpg_bc: weight of behaviour cloning; OGBench's for point mazes."""
    temperature: float = 3.0
    """awr: the inverse temperature, how strongly advantages weigh cloned actions."""
    random_goals: float | None = None
    """Share of goals of the policy that are taken from other trajectories; the rest is later in the
    same one. None: OGBench's for stitch data, 0.5 for gciql and 0 for gcbc."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it, as the data teach."""
    random = panel.random_goals
    if random is None:
        random = 0.0 if panel.algorithm == "gcbc" else 0.5
    goals = rl.DataGoalsParameters(
        goal=panel.world.task.goal_space, actor=actor_goals(random), discount=panel.discount
    )
    policy = rl.PolicyParameters(torso=panel.torso)
    if panel.algorithm == "gcbc":
        goals = replace(goals, value=actor_goals(random), actor=None, discount=1.0)
        agent: rl.AgentParameters = rl.BCAgentParameters(
            learning=panel.learning,
            memory=replace(panel.replay_memory, parts=(goals,)),
            policy=policy,
            optimizer=panel.adam,
        )
    else:
        agent = rl.GCIQLAgentParameters(
            algorithm=rl.GCIQLAlgorithmParameters(
                discount=panel.discount,
                expectile=panel.expectile,
                extraction=panel.extraction,
                cloning=panel.cloning,
                temperature=panel.temperature,
            ),
            learning=panel.learning,
            memory=replace(panel.replay_memory, parts=(goals,)),
            policy=policy,
            critic=rl.CriticParameters(torso=panel.torso),
            value=panel.torso,
            policy_optimizer=panel.adam,
            critic_optimizer=panel.adam,
            value_optimizer=panel.adam,
        )
    return from_data(panel, agent, panel.world, panel.evaluation_world)
