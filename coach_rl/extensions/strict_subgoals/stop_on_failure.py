"""Levels that stop where the level below misses its goal: Strict Subgoal Execution.

LevelParameters(parts=(StopOnFailure(),), ...)

Hwang et al. 2026, arXiv:2506.21039; see docs/algorithms/hac.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.level_parts import Judgement, LevelPart
from coach_rl.core.levels import LevelDescription, LevelPartContext, LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End, EnvResponse, Observation, missed
from coach_rl.levels.judging import end_bits


@parameter_class
class StopOnFailure(LevelPartParameters):
    """The sub-episode ends where the level below misses a goal because it used up its horizon.

    The failure is terminal. A decision on the way to which the level's own goal was reached, or a
    real end, is none.
    """

    ended_by: ClassVar[Mapping[str, End]] = MappingProxyType({"failure": End.FAILURE})

    when: Literal["training", "always"] = "training"
    """training: in heat-up and training. always: in evaluations as well."""
    reward: float | None = None
    """Reward of a decision that failed. None: what is worst under the level's goals, which is minus
    its horizon, or 0 where goals have a time; at a level without goals the environment's reward."""

    @property
    def acts_in_evaluations(self) -> bool:
        return self.when == "always"

    def settings(self) -> Iterator[str]:
        when = " in training" if self.when == "training" else ""
        yield f"stops{when} where the level below misses its goal"

    def problems(
        self, level: LevelDescription, below: Sequence[LevelDescription]
    ) -> Iterator[str | ConfigurationError]:
        if not any(isinstance(each.goal_space, GoalSpace) for each in below):
            yield (
                f"level '{level.name}' stops on failure, and no level below it has goals that "
                "could be missed; leave StopOnFailure out"
            )

    def rewards(self) -> Mapping[str, float]:
        return {} if self.reward is None else {"StopOnFailure.reward": self.reward}

    def build(self, context: LevelPartContext) -> "Failures":
        return Failures(self.worst(context.level), context.clock, when=self.when)

    def worst(self, level: LevelDescription) -> float | None:
        """The reward of a failure at a level; None for the environment's.

        Raises:
            ConfigurationError: The worst return under the level's goals is not known.
        """
        space = level.goal_space
        if self.reward is not None or not isinstance(space, GoalSpace):
            return self.reward
        returns = space.returns(level.horizon)
        if returns is None:
            raise ConfigurationError(
                f"level '{level.name}' stops on failure, which is worth minus its horizon under "
                "rewards of -1 and 0; it has no horizon or other rewards: give "
                "StopOnFailure.reward"
            )
        return returns[0]


class Failures(LevelPart):
    """`StopOnFailure` at a level.

    Args:
        reward: Of a failure; None for the environment's.
        clock: The stack's.
        when: In training alone, or always.
    """

    def __init__(
        self, reward: float | None, clock: Clock, *, when: Literal["training", "always"]
    ) -> None:
        self._reward = reward
        self._clock = clock
        self._in_test = when == "always"

    def judged(self, judgement: Judgement, answer: EnvResponse, shown: Observation) -> Judgement:  # noqa: ARG002
        if self._clock.phase is Phase.TEST and not self._in_test:
            return judgement
        failed = missed(answer.end) & ~judgement.terminated
        failed &= judgement.end & np.uint8(End.GOAL) == 0
        reward = judgement.reward
        if self._reward is not None:
            reward = np.where(failed, self._reward, reward)
        return judgement._replace(
            reward=reward,
            terminated=judgement.terminated | failed,
            truncated=judgement.truncated & ~failed,
            end=judgement.end | end_bits(failed, End.FAILURE),
            is_over=judgement.is_over | failed,
        )
