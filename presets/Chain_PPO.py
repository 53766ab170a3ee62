"""PPO on a long chain: a little reward behind the start, much at an end out of reach by chance."""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    length: int = 50
    """States of the chain; a random walk finds the end in one of 2 ** length episodes or so."""
    num_envs: int = 16
    steps: int = 100_000
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    bonus: Literal["rnd", "noveld", "count", "none"] = "count"
    """count, noveld: counts of states within an episode, or NovelD, added to the reward. rnd:
    random network distillation, with returns that no episode ends and a critic of its own."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO walks to the end of Osband et al. 2016's chain.

    The best return is 12 for any length; without a bonus it stays at 0.06.
    """
    fast = rl.AdamParameters(learning_rate=1e-3)
    bonuses = {
        "rnd": rl.RND(stream=rl.RewardStream(), optimizer=fast),
        "noveld": rl.NovelD(weight=0.1, optimizer=fast),
        "count": rl.EpisodicCount(weight=0.01, first_only=True),
        "none": None,
    }
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(2048),
            minibatch=256,
            discount=panel.discount,
            entropy_coefficient=0.01,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
        bonus=bonuses[panel.bonus],
    )
    return flat(
        panel,
        agent,
        rl.ChainParameters(length=panel.length),
        panel.schedule(evaluation_interval=10_000),
        validation=solved(11.0, within=panel.steps),
    )
