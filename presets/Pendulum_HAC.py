"""Hierarchical actor-critic swings up a pendulum, with two or three levels; or one agent does."""

import math
from typing import Literal

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.hac_agent import HACAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters, TargetSync
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import ConstantSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters
from coach_rl.exploration_policies import EpsilonGreedyNoise, GaussianNoise
from coach_rl.graph_managers import (
    HACGraphManager,
    HACGraphParameters,
    LevelParameters,
    ScheduleParameters,
)
from coach_rl.memories import ReplayMemoryParameters

HORIZONS = {1: 1000, 2: 32, 3: 10}
"""Decisions of a level per decision of the one above, by number of levels (Levy et al. 2019)."""
GOALS = GoalSpace(
    key="achieved_goal",
    low=(-math.pi, -15.0),
    high=(math.pi, 15.0),
    threshold=(math.radians(9.5), 0.6),
    angles=(0,),
)
"""Angle from upright and angular velocity, with the thresholds of the HAC paper."""


def graph_manager(
    levels: Literal[1, 2, 3] = 2,
    hindsight: bool = True,
    num_envs: int = 8,
    steps: int = 300_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    batch: int = 256,
    updates_per_step: float = 0.25,
    upper_updates_per_step: float = 4.0,
    epsilon: float = 0.2,
    noise: float = 0.1,
    testing_rate: float = 0.3,
    layers: tuple[int, ...] = (64, 64, 64),
    evaluation_interval: int = 20_000,
) -> HACGraphManager:
    """Bring a pendulum upright with a motor too weak to lift it.

    The task is the inverted pendulum of Levy et al. 2019: goals near upright, thresholds of 9.5
    degrees and 0.6 radians per second, 1000 steps.

    Args:
        levels: Levels of the stack; 1 is the flat agent, all else equal.
        hindsight: Whether to learn from other goals, too; False is the control.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size, of actors and critics.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the levels above.
        epsilon: Share of random decisions while exploring.
        noise: Deviation of the others, in halves of the action range.
        testing_rate: Share of sub-goals that are tested.
        layers: Sizes of the hidden layers.
        evaluation_interval: Environment steps between evaluations.
    """
    torso = TorsoParameters(middleware=layers, activation="relu", orthogonal=False)
    horizon = HORIZONS[levels]

    def agent(updates: float) -> HACAgentParameters:
        return HACAgentParameters(
            learner=DDPGAgentParameters(
                algorithm=DDPGAlgorithmParameters(
                    discount=discount, target_sync=TargetSync(rate=0.01)
                ),
                learning=LearningParameters(batch=batch, updates_per_step=updates),
                memory=ReplayMemoryParameters(capacity=500_000),
                exploration=EpsilonGreedyNoise(
                    epsilon=ConstantSchedule(value=epsilon),
                    noise=GaussianNoise(scale=ConstantSchedule(value=noise)),
                ),
                actor=ActorParameters(torso=torso),
                critic=CriticParameters(torso=torso),
                actor_optimizer=AdamParameters(learning_rate=learning_rate),
                critic_optimizer=AdamParameters(learning_rate=learning_rate),
            ),
            ratio=3.0 if hindsight else 0.0,
            bound_values=levels > 1,
        )

    *upper, lowest = ("top", "middle", "low")[:levels] if levels > 1 else ("low",)
    if levels == 2:
        upper, lowest = ["top"], "low"
    return HACGraphManager(
        HACGraphParameters(
            stack=(
                *(
                    LevelParameters(
                        name=name,
                        agent=agent(upper_updates_per_step),
                        goal_space=GOALS,
                        horizon=horizon,
                    )
                    for name in upper
                ),
                LevelParameters(
                    name=lowest, agent=agent(updates_per_step), goal_space=GOALS, horizon=horizon
                ),
            ),
            environment=parameters("angle_goal_pendulum"),
            testing_rate=testing_rate,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(evaluation_interval),
                evaluation_episodes=EnvironmentEpisodes(50),
            ),
            num_envs=num_envs,
        )
    )
