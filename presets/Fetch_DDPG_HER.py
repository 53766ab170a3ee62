"""DDPG with hindsight moves a robot's arm: goals it never meets by chance, rewards of -1 and 0."""

import re
from typing import Literal

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters, TargetSync
from coach_rl.core.errors import UnknownNameError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import ConstantSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.exploration_policies import EpsilonGreedyNoise, GaussianNoise
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import HindsightParameters, ReplayMemoryParameters

PACKAGE = "gymnasium_robotics"
"""Whose import registers the tasks."""

GRIPPER, OBJECT = (0, 1, 2), (3, 4, 5)
"""Where their places, in metres, stand in the observation."""

MOVED: dict[str, tuple[int, ...]] = {
    "Reach": GRIPPER,
    "Push": OBJECT,
    "Slide": OBJECT,
    "PickAndPlace": OBJECT,
}
"""What has to get to the goal, by task."""

VALIDATION: dict[str, tuple[float, int]] = {
    # A short way to the goal costs 1.7 on average, an episode that never gets there 50. So -4 takes
    # a success rate of 95 % or more, whatever the ways are like.
    "FetchReach": (-4.0, 5_000),
}
"""Evaluation reward to reach, and by when, by task."""


def graph_manager(
    level: str = "FetchReach-v4",
    num_envs: int = 2,
    steps: int = 10_000,
    hindsight: bool = True,
    ratio: float = 4.0,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    epsilon: float = 0.3,
    noise: float = 0.2,
    action_penalty: float = 1.0,
    batch: int = 256,
    updates_per_step: float = 0.8,
    layers: tuple[int, ...] = (256, 256, 256),
    evaluation_interval: int = 1_000,
) -> BasicRLGraphManager:
    """DDPG with hindsight replay on Gymnasium-Robotics' Fetch tasks.

    Settings of OpenAI Baselines' program for Plappert et al. 2018. Needs the extra
    `robotics`. In published results Push, PickAndPlace and Slide take a million steps or more.

    Args:
        level: A Fetch task, e.g. FetchReach-v4, FetchPush-v4 or FetchReachDense-v4.
        num_envs: Environments in parallel.
        steps: Environment steps to train for, heat-up included.
        hindsight: Learn from other goals as well; False is the control, all else equal.
        ratio: Relabelled transitions for each one left as it was.
        learning_rate: Adam's step size, of actor and critic.
        discount: Gamma; 1 - 1/50 for 50 steps.
        epsilon: Share of random actions while exploring.
        noise: Deviation of the others, in halves of the action range.
        action_penalty: Weight of the actions' mean square in the actor's loss.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step; 40 for an episode of 50.
        layers: Sizes of the hidden layers of actor and critic.
        evaluation_interval: Environment steps between evaluations.
    """
    task, reward = _task(level)
    goal = GoalSpace(
        low=(0.0,) * 3,
        high=(3.0,) * 3,
        threshold=(0.05,) * 3,
        elements=MOVED[task.removeprefix("Fetch")],
        reward=reward,
        reached_within="ball",
    )
    torso = TorsoParameters(middleware=layers, activation="relu", orthogonal=False)
    validated = VALIDATION.get(task) if reward == "sparse" else None
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=DDPGAgentParameters(
                algorithm=DDPGAlgorithmParameters(
                    discount=discount,
                    target_sync=TargetSync(rate=0.05, every=40),
                    # No reward is above 0 or below -1: nothing is worth less than -1 for ever.
                    clip_targets=(-1 / (1 - discount), 0.0) if discount < 1 else None,
                    action_penalty=action_penalty,
                ),
                learning=LearningParameters(batch=batch, updates_per_step=updates_per_step),
                memory=ReplayMemoryParameters(
                    hindsight=HindsightParameters(goal=goal, strategy="future", ratio=ratio)
                    if hindsight
                    else None
                ),
                exploration=EpsilonGreedyNoise(
                    epsilon=ConstantSchedule(value=epsilon),
                    noise=GaussianNoise(scale=ConstantSchedule(value=noise)),
                ),
                actor=ActorParameters(torso=torso),
                critic=CriticParameters(torso=torso),
                actor_optimizer=AdamParameters(learning_rate=learning_rate),
                critic_optimizer=AdamParameters(learning_rate=learning_rate),
                normalise_observations=5.0,
            ),
            environment=GymnasiumParameters(
                level=level if ":" in level else f"{PACKAGE}:{level}",
                # What is achieved stands in the observation already: the networks, and the
                # memory, need not have it twice.
                wrappers=(
                    (
                        "gymnasium.wrappers:FilterObservation",
                        {"filter_keys": ("observation", "desired_goal")},
                    ),
                ),
            ),
            schedule=ScheduleParameters(
                heatup=EnvironmentSteps(1_000),
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(evaluation_interval),
                evaluation_episodes=EnvironmentEpisodes(50),
            ),
            num_envs=num_envs,
            validation=None
            if validated is None
            else ValidationParameters(reward=validated[0], within=EnvironmentSteps(validated[1])),
        )
    )


def _task(level: str) -> tuple[str, Literal["sparse", "dense"]]:
    """A level's task, e.g. FetchReach, and how it is rewarded.

    Raises:
        UnknownNameError: It is none of the Fetch tasks.
    """
    found = re.fullmatch(rf"(?:{PACKAGE}:)?Fetch({'|'.join(MOVED)})(Dense)?-v\d+", level)
    if found is None:
        allowed = [f"Fetch{task}{dense}-v4" for task in MOVED for dense in ("", "Dense")]
        raise UnknownNameError("Fetch task", level, allowed)
    return f"Fetch{found[1]}", "dense" if found[2] else "sparse"
