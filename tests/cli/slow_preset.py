"""A preset whose environment takes its time, in worker processes."""

import time
from typing import Any

import numpy as np
from gymnasium import Env, spaces

from coach_rl import (
    BasicGraphParameters,
    BasicRLGraphManager,
    EnvironmentEpisodes,
    EnvironmentSteps,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
)
from coach_rl.core.records import Array
from coach_rl.environments.gymnasium import GymnasiumParameters


class Slow(Env[Array, int]):
    """A tenth of a second for a step, without an end."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Discrete(2)  # type: ignore[assignment]  # Gymnasium's own

    def reset(self, **options: Any) -> tuple[Array, dict[str, Any]]:
        """Start."""
        super().reset(seed=options.get("seed"))
        return np.zeros(3, np.float32), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Wait."""
        time.sleep(0.1)
        return self.np_random.random(3, np.float32), float(action), False, False, {}


def graph_manager(
    heatup: int = 0, interval: int = 10_000, steps: int = 100_000, mode: str = "eager"
) -> BasicRLGraphManager:
    """PPO.

    Args:
        heatup: Steps of heat-up.
        interval: Steps between evaluations, which never end.
        steps: Steps in all.
        mode: How to run gradient steps.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(8), minibatch=4),
                update_mode=mode,
            ),
            environment=GymnasiumParameters(
                level="slow_preset:Slow", vectorization="subprocess", start_method="fork"
            ),
            num_envs=2,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                heatup=EnvironmentSteps(heatup),
                evaluation_interval=EnvironmentSteps(interval),
                evaluation_episodes=EnvironmentEpisodes(1),
            ),
        )
    )
