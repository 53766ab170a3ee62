"""A graph of way-points from a data set plans ways through mazes; below, a policy reaches goals."""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.goals_from_data_tasks import MazeDataPanel
from coach_rl.presets.offline_tasks import run_length


@dataclass(frozen=True, kw_only=True)
class Panel(MazeDataPanel):
    """Settings to change with -cp."""

    updates: int = 100_000
    """Gradient updates of the lower level from the data."""
    algorithm: Literal["hiql", "gciql"] = "hiql"
    """The lower level: HIQL's, whose policy clones by advantage, or GCIQL's, whose policy climbs
    the critic near the data."""
    expectile: float | None = None
    """The nearer to 1, the nearer values are to those of the shortest ways; None: 0.7 for HIQL,
    0.9 for GCIQL."""
    ahead: int = 25
    """Steps from a transition to the goal that the lower level's policy learns from it."""
    horizon: int = 25
    """Steps to a way-point, at most."""
    temperature: float = 3.0
    """hiql: the inverse temperature, how strongly advantages weigh cloned actions."""
    cloning: float = 0.003
    """gciql: weight of behaviour cloning; OGBench's for point mazes."""
    places: int = 200
    """Places of the graph."""
    longest: float = 15.0
    """Steps by the values above which no edge leads from one place to another."""
    build_every: int = 10_000
    """Updates after which the graph is built again from the data; evaluations use the latest."""

    @property
    def lower(self) -> rl.AgentParameters:
        """The agent of the lower level."""
        goals = rl.DataGoalsParameters(actor_ahead=self.ahead, discount=self.discount)
        memory = replace(self.replay_memory, parts=(goals,))
        policy = rl.PolicyParameters(torso=self.torso)
        critic = rl.CriticParameters(torso=self.torso)
        if self.algorithm == "gciql":
            return rl.GCIQLAgentParameters(
                algorithm=rl.GCIQLAlgorithmParameters(
                    discount=self.discount,
                    expectile=0.9 if self.expectile is None else self.expectile,
                    cloning=self.cloning,
                ),
                learning=self.learning,
                memory=memory,
                policy=policy,
                critic=critic,
                value=self.torso,
                policy_optimizer=self.adam,
                critic_optimizer=self.adam,
                value_optimizer=self.adam,
            )
        return rl.HIQLAgentParameters(
            algorithm=rl.HIQLAlgorithmParameters(
                discount=self.discount,
                expectile=0.7 if self.expectile is None else self.expectile,
                extraction=rl.ExtractionParameters(temperature=self.temperature),
            ),
            learning=self.learning,
            memory=memory,
            policy=policy,
            value=critic,
            policy_optimizer=self.adam,
            value_optimizer=self.adam,
        )


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it, along places of the data."""
    task = panel.world.task
    upper = rl.DataGraphAgentParameters(
        places=rl.DataPlaces(count=panel.places, longest=panel.longest),
        every=panel.build_every,
    )
    stack = (
        rl.LevelParameters(name="top", agent=upper, goal_space=task.goal_space),
        rl.LevelParameters(
            name="low", agent=panel.lower, goal_space=task.subgoal_space, horizon=panel.horizon
        ),
    )
    turn, schedule = run_length(panel)
    return rl.HRLGraphManager(
        rl.BatchHierarchyParameters(
            data=panel.data,
            updates=turn,
            data_share=panel.data_share,
            stack=stack,
            environment=panel.world,
            evaluation_environment=panel.evaluation_world,
            num_envs=panel.num_envs,
            schedule=schedule,
        )
    )
