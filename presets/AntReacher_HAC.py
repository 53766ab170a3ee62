"""Hierarchical actor-critic walks an ant to places, with two or three levels; or one agent does."""

from typing import Literal

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.graph_managers import GraphManager, ValidationParameters
from coach_rl.presets.Pendulum_HAC import Hierarchy, Settings, UpperSettings, experiment

HORIZONS = {"ant_reacher": {2: 23, 3: 10}, "ant_four_rooms": {2: 27, 3: 10}}
"""Decisions of every level, by world and number of levels (Levy et al. 2019, appendix)."""

VALIDATION = {"ant_reacher": ValidationParameters(reward=-300.0, within=EnvironmentSteps(400_000))}
"""Acceptance tests, by world."""


def graph_manager(
    level: str = "ant_reacher",
    hierarchy: Hierarchy = "hac",
    levels: Literal[2, 3] = 2,
    hindsight: bool = True,
    num_envs: int = 16,
    steps: int = 400_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    batch: int = 512,
    updates_per_step: float = 0.125,
    upper_updates_per_step: float = 2.0,
    epsilon: float = 0.3,
    noise: float = 0.2,
    testing_rate: float = 0.3,
    layers: tuple[int, ...] = (128, 128, 128),
    evaluation_interval: int = 25_000,
) -> GraphManager:
    """Walk an ant to a place, in the open or through four rooms.

    The worlds of Levy et al. 2019; sub-goals are places with velocities.

    Args:
        level: ant_reacher or ant_four_rooms.
        hierarchy: hac; none is one agent that acts alone, all else equal.
        levels: Levels of the hierarchy.
        hindsight: Learn from other goals as well; False is the control, all else equal.
        num_envs: Environments in parallel.
        steps: Environment steps to train for, of 15 simulator steps each.
        learning_rate: Adam's step size, of actors and critics.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the level above it.
        epsilon: Share of random actions while exploring, at the lowest level.
        noise: Deviation of the others, in halves of the action range.
        testing_rate: Share of sub-goals that are tested.
        layers: Sizes of the hidden layers.
        evaluation_interval: Environment steps between evaluations.
    """
    if level not in HORIZONS:
        raise UnknownNameError("ant world of HAC", level, HORIZONS)
    world = GoalWorldParameters(level=level)
    return experiment(
        world,
        Settings(
            hindsight=hindsight,
            learning_rate=learning_rate,
            discount=discount,
            batch=batch,
            updates_per_step=updates_per_step,
            upper_updates_per_step=upper_updates_per_step,
            upper=UpperSettings(entropy=-5.0),
            epsilon=epsilon,
            noise=noise,
            testing_rate=testing_rate,
            layers=layers,
        ),
        horizons=(HORIZONS[level][levels],) * levels if hierarchy == "hac" else (),
        subgoals=(world.task.subgoal_space,) * (levels - 1),
        num_envs=num_envs,
        steps=steps,
        evaluation_interval=evaluation_interval,
        validation=VALIDATION.get(level),
    )
