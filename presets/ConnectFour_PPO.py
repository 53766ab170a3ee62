"""PPO plays Connect Four against scripted players, or against what an earlier run has learned."""

from dataclasses import dataclass
from pathlib import Path

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    opponent: str = "random"
    """The other player: random, rules, or a run's folder or checkpoint."""
    num_envs: int = 32
    steps: int = 300_000
    learning_rate: float = 2.5e-3


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO wins games of Connect Four."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(64 * panel.num_envs),
            epochs=4,
            minibatch=512,
            discount=panel.discount,
            entropy_coefficient=0.01,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        network=rl.ActorCriticParameters(torso=rl.TorsoParameters(middleware=(128, 128))),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    match panel.opponent:
        case "random" | "rules":
            environment = rl.ConnectFourParameters(opponent=panel.opponent)
        case run:
            player = rl.TrainedOpponent(run=str(Path(run).expanduser().absolute()))
            environment = rl.ConnectFourParameters(opponent=player)
    return flat(
        panel,
        agent,
        environment,
        panel.schedule(evaluation_interval=50_000, evaluation_episodes=200),
        validation=solved(0.8, within=panel.steps) if panel.opponent == "random" else None,
    )
