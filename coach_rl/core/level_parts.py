"""Parts of a level: work besides sending decisions down and judging the answers.

@parameter_class
class StandStill(LevelPartParameters):          # LevelParameters(parts=(StandStill(),), ...)
    ended_by = {"still": End.OPTION}

    def build(self, context):
        return Standing(context)

class Standing(LevelPart):                      # overrides the hooks that it needs
    ...

A level calls the hooks of its parts in their order, and only those that a part overrides.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from coach_rl.core.clock import Clock
from coach_rl.core.records import (
    BoolArray,
    Directive,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.saved import Saved
from coach_rl.core.state import State

EndBits = npt.NDArray[np.uint8]
"""Bits of `End`, [R]."""
RowIndex = IntArray | slice
"""Index of rows: their numbers, or the slice of every row, the faster index of all."""
Counts = MutableMapping[str, float]
"""Sums by name, which a level saves and sets to 0 when its figures are logged."""


class Judgement(NamedTuple):
    """R decisions, judged by the level's own task."""

    reward: FloatArray
    """[R] the goal reward, the option's own, or the raw reward at a level without either."""
    terminated: BoolArray
    """[R] the sub-episode ended and its value is final."""
    truncated: BoolArray
    """[R] the sub-episode was cut off."""
    end: EndBits
    """[R] why the sub-episode ended; 0 where it continues."""
    is_over: BoolArray
    """[R] the sub-episode ended."""
    difference: FloatArray
    """[R, G] what is achieved minus the goal; empty at a level without goals."""


NO_DIFFERENCE: FloatArray = np.zeros((0, 0))
"""The difference at a level without goals."""


class RowsOfLevel(Protocol):
    """The position of each of N rows of a level in its sub-episode; parts only read it."""

    observation: Observation
    """[N, ...] each: what the row's decision is, or was, made on."""
    goal: FloatArray
    """[N, G] the goal or option received last; G is 0 where the level receives none."""
    open: BoolArray
    """[N] the level above waits for the end of this sub-episode."""
    decisions: IntArray
    """[N] decisions in this sub-episode so far; while one is judged, it included."""
    tested: BoolArray
    """[N] the level above tests this sub-episode: no level explores."""
    decision_tested: BoolArray
    """[N] the level's own open decision is tested, by itself or from above."""


class LevelPart(Saved):
    """A part of a level; a subclass overrides the hooks that it needs.

    One decision of R rows passes `deciding`, the agent, `decided`, the levels below, `ends`,
    `judged`, the agent again, and last `observed`. Parts of different kinds come in this
    order: goals that the environment gives, the horizon, the judge, ends by the agent, those of
    `LevelDescription.parts` as they are listed, the freezing of the agent.
    """

    key: ClassVar[str] = ""
    """Key of its state in that of the level; empty: it has none."""
    ended_by: Mapping[str, End] = MappingProxyType({})
    """Reasons, beside those of every level, for which it ends sub-episodes, by their names: the log
    has `level/<name>_share`. Where it is described by parameters, these have them."""

    def note_above(self, agent: Any) -> None:
        """The agent of the level above, in a chain of levels; called once it is built."""

    def deciding(self, rows: IntArray, starts: BoolArray, seen: Observation) -> None:
        """Rows are about to decide, before their agent is shown anything.

        Args:
            rows: [R].
            starts: Where it is the first decision of a sub-episode, [R].
            seen: The observations of the level below, [R, ...] each.
        """

    def decided(self, rows: IntArray, directive: Directive) -> Directive:  # noqa: ARG002
        """The directive that the level below is sent.

        Args:
            rows: [R].
            directive: The agent's actions [R, ...], and what is known of its levels.
        """
        return directive

    def ends(self, answer: EnvResponse, index: RowIndex) -> EndBits:  # noqa: ARG002
        """Reasons why sub-episodes end, [R] bits of `End`; bits of all parts are joined.

        Called before the answer is judged, also where the simulator failed. Ends are truncations
        unless the judge, or `judged`, makes them final.

        Args:
            answer: What the decisions led to, of R rows.
            index: Index of these rows.
        """
        return np.zeros(len(answer), np.uint8)

    def judged(
        self,
        judgement: Judgement,
        answer: EnvResponse,  # noqa: ARG002
        shown: Observation,  # noqa: ARG002
    ) -> Judgement:
        """The judgement that counts.

        Args:
            judgement: Of the parts before.
            answer: What the decisions led to, of R rows.
            shown: The same as the agent sees it, [R, ...] each.
        """
        return judgement

    def observed(
        self,
        outcome: Outcome,
        answer: EnvResponse,  # noqa: ARG002
        clock: Clock,  # noqa: ARG002
    ) -> Outcome:
        """The outcome that the agent observes, of the same rows.

        A part that leaves out rows lets the agent observe them itself: no decision may stay open.

        Args:
            outcome: Of the parts before.
            answer: What it was made of, of all rows.
            clock: The agent's.
        """
        return outcome

    def metrics(self) -> dict[str, float]:
        """Figures for the log since the last call, by name."""
        return {}

    def begin_streams(self) -> None:
        """Recreate its random streams."""

    def decisions(self) -> State:
        """Its share in each row's open decision, arrays [N, ...]; empty: it has none."""
        return {}

    def follow(self, decisions: State) -> None:
        """Take the next decisions from an equal part elsewhere, whose `decisions` they are."""


class Hooks(NamedTuple):
    """The hooks that parts of a level override, each in the order of the parts."""

    note_above: Sequence[Callable[[Any], None]]
    deciding: Sequence[Callable[[IntArray, BoolArray, Observation], None]]
    decided: Sequence[Callable[[IntArray, Directive], Directive]]
    ends: Sequence[Callable[[EnvResponse, RowIndex], EndBits]]
    judged: Sequence[Callable[[Judgement, EnvResponse, Observation], Judgement]]
    observed: Sequence[Callable[[Outcome, EnvResponse, Clock], Outcome]]
    metrics: Sequence[Callable[[], dict[str, float]]]
    begin_streams: Sequence[Callable[[], None]]

    @classmethod
    def of(cls, parts: Sequence[LevelPart]) -> Self:
        """Those of parts: a level calls none that does nothing."""
        found: list[tuple[Any, ...]] = []
        for name in cls._fields:
            plain = getattr(LevelPart, name)
            own = [each for each in parts if getattr(type(each), name) is not plain]
            found.append(tuple(getattr(each, name) for each in own))
        return cls(*found)
