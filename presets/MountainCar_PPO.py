"""PPO on MountainCar: no reward differs before the flag, so a bonus leads there."""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved

CELLS = {"cell": (0.1, 0.01), "key": "observation"}
"""A grid over position, from -1.2 to 0.6, and velocity, from -0.07 to 0.07."""


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    num_envs: int = 16
    steps: int = 100_000
    learning_rate: float = 3e-4
    """Learning rate at the start; it falls to zero."""
    bonus: Literal["rnd", "noveld", "count", "none"] = "rnd"
    """rnd: random network distillation, with returns that no episode ends and a critic of its own.
    noveld, count: NovelD, or counts within an episode, added to the reward."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO drives a weak car out of a valley."""
    networks = {"batch": 512, "warmup": 2_000, "optimizer": rl.AdamParameters(learning_rate=3e-4)}
    bonuses = {
        "rnd": lambda: rl.RND(stream=rl.RewardStream(weight=1.0), **networks),
        "noveld": lambda: rl.NovelD(weight=1.0, **networks, **CELLS),
        "count": lambda: rl.EpisodicCount(weight=1.0, first_only=True, **CELLS),
        "none": lambda: None,
    }
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(4096),
            minibatch=256,
            discount=panel.discount,
            scale_returns=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
        input_filter=rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(clip=10.0),)}
        ),
        bonus=bonuses[panel.bonus](),
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="MountainCar-v0"),
        panel.schedule(evaluation_interval=20_000, evaluation_episodes=20),
        validation=solved(-150.0, within=100_000),
    )
