"""Actions that are repeated within a step of a Gymnasium environment."""

from typing import Any, SupportsFloat

import gymnasium


class RepeatedActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose step is several of the inner one's with the same action.

    Rewards are summed; observation and info are those of the last inner step, which is the one that
    ends the episode, if one does.

    Args:
        env: The environment, with its time limit.
        count: Inner steps in a step.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, count: int) -> None:
        super().__init__(env)
        self._count = count

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        total = float(reward)
        for _ in range(self._count - 1):
            if terminated or truncated:
                break
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
        return observation, total, terminated, truncated, info
