"""PPO on Acrobot: discrete actions and a reward that carries no information before the goal."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    num_envs: int = 16
    steps: int = 200_000
    learning_rate: float = 3e-4
    """Learning rate of actor and critic."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO swings a two-link arm up to a line."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(4096), discount=panel.discount, gae_lambda=0.94
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
        input_filter=rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(clip=10.0),)}
        ),
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="Acrobot-v1"),
        panel.schedule(evaluation_interval=10_000),
        validation=solved(-100.0, within=200_000),
    )
