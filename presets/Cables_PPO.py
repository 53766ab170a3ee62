"""PPO connects places by cables; with masks it draws allowed cables alone."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    places: int = 8
    """Places to connect."""
    masked: bool = True
    """If True, the environment shows which cables are allowed."""
    num_envs: int = 16
    steps: int = 300_000
    learning_rate: float = 3e-3
    discount: float = 0.5
    """Discount factor; small, because the shortest allowed cable is always right."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO connects places with as little cable as possible."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(64 * panel.num_envs),
            epochs=8,
            minibatch=256,
            discount=panel.discount,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        network=rl.ActorCriticParameters(torso=rl.TorsoParameters(middleware=(128,))),
        optimizer=ppo_optimizer(panel.learning_rate),
        input_filter=rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(),)}
        ),
    )
    return flat(
        panel,
        agent,
        rl.CablesParameters(places=panel.places, masked=panel.masked),
        panel.schedule(evaluation_interval=30_000, evaluation_episodes=200),
        # of 8 places: the least is 1.82 on average, and allowed cables at random make 3.62
        validation=solved(-1.91, within=panel.steps),
    )
