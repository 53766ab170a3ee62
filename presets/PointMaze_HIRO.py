"""HIRO finds the way through mazes: sub-goals are how far to go next; or TD3 alone tries to."""

from dataclasses import replace

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.goal_worlds import GOAL_WORLDS, GoalWorldParameters
from coach_rl.graph_managers import HRLGraphManager, ScheduleParameters, ValidationParameters
from coach_rl.presets.AntMaze_HIRO import Hierarchy, Settings, experiment


def graph_manager(
    level: str = "point_maze_u",
    hierarchy: Hierarchy = "hiro",
    correction: bool = True,
    num_envs: int = 8,
    steps: int = 100_000,
    horizon: int = 10,
    reach: float = 1.5,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    batch: int = 128,
    updates_per_step: float = 0.25,
    upper_updates_per_step: float = 2.0,
    noise: float = 0.2,
    upper_noise: float = 0.3,
    reward_scale: float = 0.1,
    layers: tuple[int, ...] = (128, 128),
    memory: int = 500_000,
    heatup: int = 5_000,
    evaluation_interval: int = 5_000,
) -> HRLGraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it.

    A step is worth -1 until the goal is reached, and 0 there, where the episode ends.

    Args:
        level: point_maze_u, point_maze_medium, point_maze_large or point_maze_four_rooms.
        hierarchy: hiro; none is TD3 alone, all else equal.
        correction: Whether sub-goals are corrected; False is the control.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        horizon: Environment steps that a sub-goal holds for.
        reach: How far a sub-goal may lie away along x and y, in metres.
        learning_rate: Adam's step size, of actors and critics.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the upper level.
        noise: Deviation of the exploration at the lowest level, in halves of the action range.
        upper_noise: The same of sub-goals.
        reward_scale: Multiplies the environment's rewards.
        layers: Sizes of the hidden layers.
        memory: Environment steps that are kept, by both levels.
        heatup: Random steps at the start.
        evaluation_interval: Environment steps between evaluations.
    """
    mazes = [name for name in GOAL_WORLDS if name.startswith("point_maze")]
    if level not in mazes:
        raise UnknownNameError("point maze", level, mazes)
    world = GoalWorldParameters(level=level)
    places = world.task.subgoal_space
    return experiment(
        world,
        Settings(
            learning_rate=learning_rate,
            actor_learning_rate=learning_rate,
            discount=discount,
            batch=batch,
            updates_per_step=updates_per_step,
            upper_updates_per_step=upper_updates_per_step,
            learning_starts=1_000,
            action_unit="half_range",
            noise=noise,
            upper_noise=upper_noise,
            target_noise=0.2,
            target_noise_clip=0.5,
            layers=layers,
            action_layers=(0,),
            final_bound=None,
            memory=memory,
            reward_scale=reward_scale,
        ),
        subgoals=replace(
            places,
            threshold=(0.0,) * places.size,  # never reached: a sub-goal holds for its whole time
            reached_within="elements",
            relative=True,
            reach=(reach,) * places.size,
            observed="relative",
            reward="dense",
        ),
        hierarchy=hierarchy,
        correction=correction,
        horizon=horizon,
        low_filter=None,
        low_actions=None,
        tested_in=None,
        num_envs=num_envs,
        schedule=ScheduleParameters(
            heatup=EnvironmentSteps(heatup),
            training=EnvironmentSteps(steps),
            evaluation_interval=EnvironmentSteps(evaluation_interval),
            evaluation_episodes=EnvironmentEpisodes(50),
        ),
        # The way is about 25 steps long on average; an episode that never gets there costs 200.
        validation=ValidationParameters(reward=-35.0, within=EnvironmentSteps(60_000))
        if level == "point_maze_u"
        else None,
    )
