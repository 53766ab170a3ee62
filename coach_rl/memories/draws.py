"""The draws of a replay memory by default: transitions, one by one."""

from collections.abc import Sequence
from typing import ClassVar

from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import HIDDEN_STATE, FloatArray, IntArray
from coach_rl.memories.parts import ReplaySettings
from coach_rl.memories.samplers import Gather, SamplerUnit


@parameter_class
class SingleTransitions:
    """Transitions that are drawn one by one."""

    is_single: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ()

    def check(self, memory: ReplaySettings) -> None:
        pass

    def check_space(self, observation_space: spaces.Dict, row_capacity: int) -> None:  # noqa: ARG002 - as DrawParameters
        if HIDDEN_STATE in observation_space.spaces:
            raise ConfigurationError(
                "a recurrent network learns from sequences; set ReplayMemoryParameters.draws="
                "SequenceParameters(length=...)"
            )

    def check_batch(self, batch: int, owner: str) -> None:
        pass

    def units(self, returns: Sequence[SamplerUnit], gather: Gather) -> list[SamplerUnit]:
        return [*returns, gather]

    def count(self, batch: int) -> int:
        return batch

    def priorities(
        self,
        positions: IntArray,
        errors: FloatArray,
        count: int,  # noqa: ARG002 - as DrawParameters
    ) -> tuple[IntArray, FloatArray]:
        return positions, errors
