"""SAC on the MuJoCo tasks, with the settings of Tianshou's 2021 MuJoCo benchmark."""

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters, SACAlgorithmParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.presets.Mujoco_DDPG import experiment, own_settings

BASE: dict[str, float] = {"discount": 0.99, "heatup": 10_000}
"""Settings of a task that has none of its own."""

VALIDATION: dict[str, tuple[float, int]] = {
    "half_cheetah": (6000.0, 300_000),
    "hopper": (1500.0, 500_000),
    "inverted_pendulum": (950.0, 50_000),
    "reacher": (-6.0, 50_000),
}
"""Evaluation reward to reach, and by when, by short name."""


def graph_manager(
    level: str = "half_cheetah",
    num_envs: int = 1,
    steps: int = 1_000_000,
    learning_rate: float = 1e-3,
    temperature: float | None = 0.2,
    temperature_learning_rate: float = 3e-4,
    batch: int = 256,
    updates_per_step: float = 1.0,
    discount: float | None = None,
    heatup: int | None = None,
    layers: tuple[int, ...] = (256, 256),
    memory: int = 1_000_000,
    evaluation_interval: int = 5_000,
) -> BasicRLGraphManager:
    """SAC on a MuJoCo task.

    Args:
        level: A MuJoCo task, e.g. half_cheetah or HalfCheetah-v5.
        num_envs: Environments in parallel.
        steps: Environment steps to train for, heat-up included.
        learning_rate: Adam's step size, of actor and critics.
        temperature: What a nat of entropy is worth; None learns it.
        temperature_learning_rate: Adam's step size, of a learned temperature.
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
        SACAgentParameters(
            algorithm=SACAlgorithmParameters(
                discount=own["discount"] if discount is None else discount,
                initial_temperature=1.0 if temperature is None else temperature,
                learn_temperature=temperature is None,
            ),
            learning=LearningParameters(batch=batch, updates_per_step=updates_per_step),
            memory=ReplayMemoryParameters(capacity=memory),
            actor=ActorParameters(torso=torso),
            critic=CriticParameters(torso=torso),
            actor_optimizer=AdamParameters(learning_rate=learning_rate),
            critic_optimizer=AdamParameters(learning_rate=learning_rate),
            temperature_optimizer=AdamParameters(learning_rate=temperature_learning_rate),
        ),
        num_envs=num_envs,
        heatup=int(own["heatup"]) if heatup is None else heatup,
        steps=steps,
        evaluation_interval=evaluation_interval,
        marks=VALIDATION,
    )
