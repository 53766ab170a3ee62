"""A filter of what an off-policy agent stores: whole episodes, held back until they are over."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

from coach_rl.core.records import Array, BoolArray, IntArray, Outcome, Transition, take
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames


class EpisodeFilter(Saved, ABC):
    """Holds transitions back until their episode is over, and stores it or drops it as a whole.

        class Won(EpisodeFilter):
            def over(self, outcome):
                return (outcome.end & (End.OUTER | End.TERMINATED | End.TRUNCATED)) > 0

            def keeps(self, outcome):                   # where a level above reached its goal
                return (outcome.end & End.OUTER) > 0

    Decisions that are dropped, or held back, earn no gradient steps.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("_held", varies=True),)

    def __init__(self) -> None:
        self._held: dict[str, list[dict[str, Any]]] = {}
        """The transitions of each row's open episode, in order."""

    @abstractmethod
    def over(self, outcome: Outcome) -> BoolArray:
        """Return where an episode ends, [R]; the (sub-)episode must end there, too."""

    @abstractmethod
    def keeps(self, outcome: Outcome) -> BoolArray:
        """Return which episodes are stored, [R]; it counts where they are over."""

    def __call__(self, transition: Transition, outcome: Outcome) -> Sequence[Transition]:
        over, keeps = self.over(outcome), self.keeps(outcome)
        stored: list[Transition] = []
        for place, row in enumerate(transition.rows.tolist()):
            held = self._held.setdefault(str(row), [])
            held.append(_one(transition, slice(place, place + 1)))
            if over[place]:
                del self._held[str(row)]
                stored += [Transition(**each) for each in held] if keeps[place] else []
        return stored

    def drop(self, rows: IntArray) -> None:
        for row in rows.tolist():
            self._held.pop(str(row), None)


def _one(transition: Transition, place: slice) -> dict[str, Any]:
    """One of the transitions, by the names of its fields."""
    values = {each.name: getattr(transition, each.name) for each in fields(transition)}
    return {name: _part(value, place) for name, value in values.items()}


def _part(value: Array | dict[str, Array] | None, place: slice) -> object:
    if value is None:
        return None
    part = take(value, place) if isinstance(value, dict) else value[place]
    return (
        {key: each.copy() for key, each in part.items()} if isinstance(part, dict) else part.copy()
    )
