"""PPO with the adaptive KL penalty on the MuJoCo tasks; everything else as in Mujoco_PPO."""

from dataclasses import replace

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.graph_managers import BasicGraphParameters, BasicRLGraphManager
from coach_rl.presets import Mujoco_PPO


def graph_manager(
    level: str = "half_cheetah",
    num_envs: int = 8,
    steps: int = 1_000_000,
    learning_rate: float | None = None,
    kl_target: float = 0.01,
    initial_kl_coefficient: float = 1.0,
) -> BasicRLGraphManager:
    """PPO with an adaptive KL penalty on a MuJoCo task.

    Args:
        level: A MuJoCo task, e.g. half_cheetah or HalfCheetah-v5.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size at the start; None takes the task's own.
        kl_target: Divergence per round that the penalty steers for.
        initial_kl_coefficient: Weight of the penalty in the first round.
    """
    clipped = Mujoco_PPO.graph_manager(
        level=level, num_envs=num_envs, steps=steps, learning_rate=learning_rate
    ).parameters
    assert isinstance(clipped, BasicGraphParameters)
    assert isinstance(clipped.agent, PPOAgentParameters)
    algorithm = replace(
        clipped.agent.algorithm,
        objective="kl",
        kl_target=kl_target,
        initial_kl_coefficient=initial_kl_coefficient,
    )
    return BasicRLGraphManager(replace(clipped, agent=replace(clipped.agent, algorithm=algorithm)))
