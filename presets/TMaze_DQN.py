"""Recurrent DQN in a T-maze, which replays sequences (R2D2)."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, LayerKind, flat, recurrent_layer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    length: int = 10
    """Steps from the start to the junction."""
    recurrence: LayerKind = "gru"
    """The recurrent layer; without one, half of the turns are right at most."""
    num_envs: int = 8
    steps: int = 150_000
    learning_rate: float = 1e-3


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DQN walks through a corridor and turns to the side of the cue."""
    layer = recurrent_layer(panel.recurrence, size=32)
    torso = rl.TorsoParameters(
        embedder=(32,), recurrence=layer, middleware=(), activation="relu", orthogonal=False
    )
    falling = rl.LinearSchedule(start=1.0, end=0.02, over=rl.EnvironmentSteps(panel.steps // 3))
    agent = rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            discount=panel.discount, double=True, target_sync=rl.TargetSync(every=200)
        ),
        learning=rl.LearningParameters(batch=512, updates_per_step=1 / 16, learning_starts=2_000),
        memory=rl.ReplayMemoryParameters(
            capacity=100_000,
            draws=rl.SingleTransitions() if layer is None else rl.SequenceParameters(length=64),
        ),
        exploration=rl.EpsilonGreedy(epsilon=falling),
        network=rl.QNetworkParameters(torso=torso),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        optimizer=rl.AdamParameters(learning_rate=panel.learning_rate, max_gradient_norm=10.0),
    )
    return flat(
        panel,
        agent,
        rl.TMazeParameters(length=panel.length),
        panel.schedule(evaluation_interval=15_000, evaluation_episodes=100),
        # 95 % of right turns on the shortest way; without memory less than 2
        validation=solved(3.75, within=panel.steps),
    )
