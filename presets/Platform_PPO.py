"""PPO with parameterised actions: run, hop and leap over platforms, each as far as it chooses."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    arguments: bool = True
    """Each argument counts where its action was chosen; False: all three count always."""
    num_envs: int = 64
    steps: int = 200_000
    learning_rate: float = 1e-3


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO chooses the kind of a move and its distance, in the Platform domain.

    The return is the share of the way to the right end, 1 in all.
    """
    arguments = {name: ("kind", kind) for kind, name in enumerate(("run", "hop", "leap"))}
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(2048),
            epochs=10,
            minibatch=256,
            discount=panel.discount,
            entropy_coefficient=0.001,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        arguments=arguments if panel.arguments else {},
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    return flat(
        panel,
        agent,
        rl.PlatformParameters(),
        panel.schedule(evaluation_interval=20_000, evaluation_episodes=100),
        validation=solved(0.85, within=panel.steps),
    )
