"""A preset whose environment takes its time, in worker processes."""

import time
from typing import Any

import numpy as np
from gymnasium import Env, spaces

import coach_rl as rl
from coach_rl.core.records import Array


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
) -> rl.BasicRLGraphManager:
    """PPO.

    Args:
        heatup: Steps of heat-up.
        interval: Steps between evaluations, which never end.
        steps: Steps in all.
        mode: How to run gradient steps.
    """
    return rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=rl.PPOAgentParameters(
                algorithm=rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(8), minibatch=4),
                update_mode=mode,
            ),
            environment=rl.GymnasiumParameters(
                level="slow_preset:Slow", vectorization="subprocess", start_method="fork"
            ),
            num_envs=2,
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(steps),
                heatup=rl.EnvironmentSteps(heatup),
                evaluation_interval=rl.EnvironmentSteps(interval),
                evaluation_episodes=rl.EnvironmentEpisodes(1),
            ),
        )
    )
