"""Conservative Q-learning on CartPole from a data set: discrete actions without a world."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.offline_tasks import DataPanel, from_data


@dataclass(frozen=True, kw_only=True)
class Panel(DataPanel):
    """Settings to change with -cp."""

    data: str = "data:cartpole-expert"
    updates: int = 10_000
    """Gradient updates from the data."""
    evaluation_interval: int = 2_000
    """Gradient updates between evaluations."""
    batch: int = 64
    """Transitions per update."""
    memory: int = 50_000
    """Transitions kept, the data's and the world's."""
    discount: float = 0.99
    """Discount factor."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    conservatism: float = 1.0
    """Weight of the term that lowers the values of actions that the data don't have."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Conservative Q-learning balances a pole."""
    agent = rl.DiscreteCQLAgentParameters(
        algorithm=rl.CQLAlgorithmParameters(
            discount=panel.discount,
            conservatism=panel.conservatism,
            target_sync=rl.TargetSync(every=500),
        ),
        learning=panel.learning,
        memory=panel.replay_memory,
        exploration=rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=0.02)),
        network=rl.QNetworkParameters(torso=panel.torso),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
    )
    return from_data(panel, agent, rl.GymnasiumParameters(level="CartPole-v1"))
