"""HIQL finds ways through mazes from a data set: one value, a level for sub-goals, one below."""

from dataclasses import dataclass, replace

import coach_rl as rl
from coach_rl.presets.goals_from_data_tasks import MazeDataPanel, actor_goals
from coach_rl.presets.offline_tasks import run_length


@dataclass(frozen=True, kw_only=True)
class Panel(MazeDataPanel):
    """Settings to change with -cp."""

    updates: int = 100_000
    """Gradient updates of each level from the data."""
    expectile: float = 0.7
    """The nearer to 1, the nearer values are to those of the shortest ways."""
    ahead: int = 25
    """Steps from a decision of the upper level to its sub-goal."""
    horizon: int = 25
    """Steps after which the upper level sets another sub-goal, or before where it is reached. The
    authors' code sets one in every step: 1."""
    temperature: float = 3.0
    """The inverse temperature of the lower level: how strongly advantages weigh cloned actions."""
    upper_temperature: float = 3.0
    """That of the upper level, for sub-goals."""
    random_goals: float = 0.5
    """Share of goals of the policy that are taken from other trajectories; the rest is later in the
    same one. OGBench takes 0.5 for stitch data, and 0 for others."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it, by sub-goals."""
    task = panel.world.task
    cuts = rl.SubGoalsFromDataParameters(
        shares=actor_goals(panel.random_goals), ahead=panel.ahead, discount=panel.discount
    )
    goals = rl.DataGoalsParameters(actor_ahead=panel.ahead, discount=panel.discount)
    upper = rl.HIQLUpperAgentParameters(
        extraction=rl.ExtractionParameters(temperature=panel.upper_temperature),
        learning=panel.learning,
        memory=replace(panel.replay_memory, parts=(cuts,)),
        policy=rl.PolicyParameters(torso=panel.torso),
        policy_optimizer=panel.adam,
    )
    lower = rl.HIQLAgentParameters(
        algorithm=rl.HIQLAlgorithmParameters(
            discount=panel.discount,
            expectile=panel.expectile,
            extraction=rl.ExtractionParameters(temperature=panel.temperature),
        ),
        learning=panel.learning,
        memory=replace(panel.replay_memory, parts=(goals,)),
        policy=rl.PolicyParameters(torso=panel.torso),
        value=rl.CriticParameters(torso=panel.torso),
        policy_optimizer=panel.adam,
        value_optimizer=panel.adam,
    )
    stack = (
        rl.LevelParameters(name="top", agent=upper, goal_space=task.goal_space),
        rl.LevelParameters(
            name="low", agent=lower, goal_space=task.subgoal_space, horizon=panel.horizon
        ),
    )
    turn, schedule = run_length(panel, levels=len(stack))
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
