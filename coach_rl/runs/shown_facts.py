"""Objects that show facts about themselves: one line on a console, a table in a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape

from coach_rl.core.shown_text import one_line


class ShowsFacts(ABC):
    """Base of classes whose objects show facts about themselves, never all their fields.

    class Trained(ShowsFacts):
        def facts(self) -> Mapping[str, object]:
            return {"run": self.run, "steps": f"{self.steps:,}"}
    """

    @abstractmethod
    def facts(self) -> Mapping[str, object]:
        """Facts by name, in the order in which they are shown; what is None is left out."""

    def __repr__(self) -> str:
        words = (f"{name}: {value}" for name, value in _known(self.facts()))
        return f"<{type(self).__name__}, {'; '.join(words)}>"

    def _repr_html_(self) -> str:
        """The facts as a table; notebooks show an object by this."""
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(name)}</th>'
            f'<td style="text-align: left">{escape(value)}</td></tr>'
            for name, value in _known(self.facts())
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def _known(facts: Mapping[str, object]) -> list[tuple[str, str]]:
    """The facts that there are, a line each: names of runs and tasks may be others' text."""
    return [(name, one_line(str(value))) for name, value in facts.items() if value is not None]
