"""DDPG on the MuJoCo tasks, with the settings of Tianshou's 2021 MuJoCo benchmark."""

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters
from coach_rl.core.agents import AgentParameters
from coach_rl.core.schedules import ConstantSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.mujoco import MujocoParameters
from coach_rl.exploration_policies import GaussianNoise
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.presets.Mujoco_PPO import short_name_of

BASE: dict[str, float] = {"discount": 0.99, "heatup": 25_000}
"""Settings of a task that has none of its own."""

PER_LEVEL: dict[str, dict[str, float]] = {
    # The reward of swimming comes late: with 0.99 every published run stays below 150.
    "swimmer": {"discount": 0.9999},
    "inverted_pendulum": {"heatup": 1_000},
    "inverted_double_pendulum": {"heatup": 1_000},
    "reacher": {"heatup": 1_000},
}
"""Settings of single tasks, by short name."""

VALIDATION: dict[str, tuple[float, int]] = {
    "half_cheetah": (6000.0, 300_000),
    "hopper": (800.0, 500_000),
    "inverted_pendulum": (950.0, 50_000),
    "reacher": (-6.0, 50_000),
}
"""Evaluation reward to reach, and by when, by short name."""


def graph_manager(
    level: str = "half_cheetah",
    num_envs: int = 1,
    steps: int = 1_000_000,
    learning_rate: float = 1e-3,
    noise: float = 0.1,
    batch: int = 256,
    updates_per_step: float = 1.0,
    discount: float | None = None,
    heatup: int | None = None,
    layers: tuple[int, ...] = (256, 256),
    memory: int = 1_000_000,
    evaluation_interval: int = 5_000,
) -> BasicRLGraphManager:
    """DDPG on a MuJoCo task.

    Args:
        level: A MuJoCo task, e.g. half_cheetah or HalfCheetah-v5.
        num_envs: Environments in parallel.
        steps: Environment steps to train for, heat-up included.
        learning_rate: Adam's step size, of actor and critic.
        noise: Deviation of the exploration, in halves of the action range.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step.
        discount: Gamma; None takes the task's own.
        heatup: Random steps at the start; None takes the task's own.
        layers: Sizes of the hidden layers of actor and critic.
        memory: Transitions kept.
        evaluation_interval: Environment steps between evaluations.
    """
    own = BASE | own_settings(level)
    torso = TorsoParameters(middleware=layers, activation="relu", orthogonal=False)
    return experiment(
        level,
        DDPGAgentParameters(
            algorithm=DDPGAlgorithmParameters(
                discount=own["discount"] if discount is None else discount,
            ),
            learning=LearningParameters(batch=batch, updates_per_step=updates_per_step),
            memory=ReplayMemoryParameters(capacity=memory),
            exploration=GaussianNoise(scale=ConstantSchedule(value=noise)),
            actor=ActorParameters(torso=torso),
            critic=CriticParameters(torso=torso),
            actor_optimizer=AdamParameters(learning_rate=learning_rate),
            critic_optimizer=AdamParameters(learning_rate=learning_rate),
        ),
        num_envs=num_envs,
        heatup=int(own["heatup"]) if heatup is None else heatup,
        steps=steps,
        evaluation_interval=evaluation_interval,
        marks=VALIDATION,
    )


def own_settings(level: str) -> dict[str, float]:
    """What a task has of its own, whichever of its names it is given by; UnknownNameError."""
    MujocoParameters(level=level)  # says what is wrong with a level that does not exist
    return PER_LEVEL.get(short_name_of(level), {})


def experiment(
    level: str,
    agent: AgentParameters,
    *,
    num_envs: int,
    heatup: int,
    steps: int,
    evaluation_interval: int,
    marks: dict[str, tuple[float, int]],
) -> BasicRLGraphManager:
    """An off-policy agent on a MuJoCo task; the same for DDPG, TD3 and SAC.

    Args:
        level: A MuJoCo task.
        agent: Who learns.
        num_envs: Environments in parallel.
        heatup: Random steps at the start.
        steps: Environment steps to train for, heat-up included.
        evaluation_interval: Environment steps between evaluations.
        marks: Evaluation reward to reach, and by when, by short name.
    """
    mark = marks.get(short_name_of(level))
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=MujocoParameters(level=level),
            schedule=ScheduleParameters(
                heatup=EnvironmentSteps(heatup),
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(evaluation_interval),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=num_envs,
            validation=None
            if mark is None
            else ValidationParameters(reward=mark[0], within=EnvironmentSteps(mark[1])),
        )
    )
