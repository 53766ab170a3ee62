"""PPO on tasks of the DeepMind Control Suite, from state, with the settings for MuJoCo tasks."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.control_tasks import ControlPanel
from coach_rl.presets.panels import flat


@dataclass(frozen=True, kw_only=True)
class Panel(ControlPanel):
    """Settings to change with -cp."""

    learning_rate: float = 3e-4
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.99
    """Discount factor."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.2
    """Clip range of the policy's probability ratio."""
    rollout: int = 2048
    """Steps collected before each round of updates."""
    epochs: int = 10
    """Passes over a rollout."""
    minibatch: int = 64
    """Batch size."""
    evaluation_interval: int = 20_000
    """Environment steps between evaluations."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO on a task of the DeepMind Control Suite. Needs the extra `dm_control`."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            epochs=panel.epochs,
            minibatch=panel.minibatch,
            discount=panel.discount,
            gae_lambda=panel.gae_lambda,
            clip=panel.clip,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
            recompute_advantages=True,
            scale_returns=True,
        ),
        network=rl.ActorCriticParameters(initial_log_std=-0.5),
        optimizer=rl.AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-8, max_gradient_norm=0.5
        ),
        input_filter=rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(clip=10.0),)}
        ),
    )
    return flat(
        panel,
        agent,
        panel.environment,
        panel.schedule(panel.evaluation_interval),
        validation=None,
    )
