"""Decisions that are terminal for an agent's learning alone, such as those that lose a life.

LevelParameters(parts=(TerminalInfo(info="life_lost"),), ...)
"""

from collections.abc import Iterator
from dataclasses import replace

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.level_parts import LevelPart
from coach_rl.core.levels import LevelPartContext, LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import EnvResponse, Outcome


@parameter_class
class TerminalInfo(LevelPartParameters):
    """The agent learns that nothing follows a decision where an info of the environment is true.

    The episode continues: in the environment, in stacks of frames, in hidden states, in exploration
    noise, and in the logged returns and lengths.
    """

    info: str
    """Name of the info, one flag a row."""

    @property
    def acts_in_evaluations(self) -> bool:
        return False

    def settings(self) -> Iterator[str]:
        yield f"learns that nothing follows where the info '{self.info}' is true"

    def build(self, context: LevelPartContext) -> "LearnedEnds":  # noqa: ARG002
        return LearnedEnds(self.info)


class LearnedEnds(LevelPart):
    """`TerminalInfo` at a level.

    Args:
        info: The info's name.
    """

    def __init__(self, info: str) -> None:
        self._info = info

    def observed(self, outcome: Outcome, answer: EnvResponse, clock: Clock) -> Outcome:  # noqa: ARG002
        flags = answer.info.get(self._info)
        if flags is None:
            known = ", ".join(sorted(answer.info)) or "none"
            raise ConfigurationError(
                f"TerminalInfo.info names the info '{self._info}', which the environment does not "
                f"report; it reports {known}"
            )
        ends = flags.astype(bool) & ~outcome.truncated
        if not ends.any():
            return outcome
        return replace(outcome, terminated=outcome.terminated | ends)
