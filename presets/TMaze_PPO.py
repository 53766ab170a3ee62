"""Recurrent PPO in a T-maze: the turn at the end depends on what the first step showed."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, LayerKind, flat, recurrent_layer, solved
from coach_rl.presets.recurrent_panels import recurrent_ppo


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    length: int = 10
    """Steps from the start to the junction."""
    recurrence: LayerKind = "gru"
    """The recurrent layer; without one, half of the turns are right at most."""
    num_envs: int = 16
    steps: int = 200_000
    learning_rate: float = 2e-3


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO walks through a corridor and turns to the side of the cue.

    Sequences are as long as the longest episode, so that the turn's reward reaches the step at
    which the cue was seen. A long corridor needs rollouts with more turns: length=50 learns with
    num_envs=64 and steps=1500000.
    """
    torso = rl.TorsoParameters(
        embedder=(32,),
        recurrence=recurrent_layer(panel.recurrence, size=32, span=3 * panel.length),
        middleware=(),
    )
    return flat(
        panel,
        recurrent_ppo(
            panel, torso, entropy_coefficient=0.02, sequence=max(64, 2 * panel.length + 10)
        ),
        rl.TMazeParameters(length=panel.length),
        panel.schedule(evaluation_interval=20_000, evaluation_episodes=100),
        # 95 % of right turns on the shortest way; without memory less than 2
        validation=solved(3.75, within=panel.steps),
    )
