"""TD3 on the MuJoCo tasks, with the settings of its paper and of Tianshou's benchmark."""

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.td3_agent import TD3AgentParameters, TD3AlgorithmParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.schedules import ConstantSchedule
from coach_rl.exploration_policies import GaussianNoise
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.presets.Mujoco_DDPG import experiment, own_settings

BASE: dict[str, float] = {"discount": 0.99, "heatup": 25_000}
"""Settings of a task that has none of its own."""

VALIDATION: dict[str, tuple[float, int]] = {
    "half_cheetah": (5000.0, 300_000),
    "hopper": (1500.0, 500_000),
    "inverted_pendulum": (950.0, 50_000),
    "reacher": (-6.0, 50_000),
}
"""Evaluation reward to reach, and by when, by short name."""


def graph_manager(
    level: str = "half_cheetah",
    num_envs: int = 1,
    steps: int = 1_000_000,
    learning_rate: float = 3e-4,
    noise: float = 0.1,
    batch: int = 256,
    updates_per_step: float = 1.0,
    discount: float | None = None,
    heatup: int | None = None,
    layers: tuple[int, ...] = (256, 256),
    memory: int = 1_000_000,
    evaluation_interval: int = 5_000,
) -> BasicRLGraphManager:
    """TD3 on a MuJoCo task.

    Args:
        level: A MuJoCo task, e.g. half_cheetah or HalfCheetah-v5.
        num_envs: Environments in parallel.
        steps: Environment steps to train for, heat-up included.
        learning_rate: Adam's step size, of actor and critics.
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
        TD3AgentParameters(
            algorithm=TD3AlgorithmParameters(
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
