"""Where a program's time goes: nested, named spans."""

import time
from contextlib import AbstractContextManager, nullcontext

from rich.table import Table

_NOTHING = nullcontext()


class Span:
    """One named stretch of the program inside its parent; a context manager that adds up its time.

    Attributes:
        name: Its own name, not its path.
        count: How often it was finished.
        inclusive_seconds: Time between entry and exit, summed over the finished ones.
        children: Spans that were begun inside it, by name, in the order of their first time.
    """

    def __init__(self, name: str, profiler: "Profiler", parent: "Span | None") -> None:
        self.name = name
        self.count = 0
        self.inclusive_seconds = 0.0
        self.children: dict[str, Span] = {}
        self._profiler = profiler
        self._parent = parent
        self._since = 0.0

    @property
    def exclusive_seconds(self) -> float:
        """Inclusive time less that of the children."""
        return self.inclusive_seconds - sum(
            child.inclusive_seconds for child in self.children.values()
        )

    def __enter__(self) -> None:
        self._profiler.current = self
        self._since = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        self.inclusive_seconds += time.perf_counter() - self._since
        self.count += 1
        assert self._parent is not None
        self._profiler.current = self._parent


class Profiler:
    """Measures spans of one thread; when it is off, a span costs one call and does nothing.

    profiler = Profiler(enabled=True)
    with profiler.span("tick"):
        with profiler.span("act"):
            ...
    console.print(profiler.table())

    A span belongs to the one it is begun in: the same name in two places is two spans.

    Args:
        enabled: Whether to measure.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self.root = Span("", self, None)
        """Holds the outermost spans; has no time of its own."""
        self.current = self.root
        """The innermost span that is open."""

    def span(self, name: str) -> AbstractContextManager[None]:
        """A context manager for `with`, to be entered at once."""
        if not self._enabled:
            return _NOTHING
        parent = self.current
        child = parent.children.get(name)
        if child is None:
            child = parent.children[name] = Span(name, self, parent)
        return child

    def table(self) -> Table:
        """All spans as a tree; shares are of the outermost spans' total. Open spans don't count."""
        table = Table(title="Where the time went", title_justify="left")
        table.add_column("span", no_wrap=True)
        for title in ("count", "seconds", "share", "own seconds", "ms each"):
            table.add_column(title, justify="right")
        total = sum(span.inclusive_seconds for span in self.root.children.values())
        for outermost in self.root.children.values():
            _add_rows(table, outermost, depth=0, total=total)
        return table


def _add_rows(table: Table, span: Span, *, depth: int, total: float) -> None:
    if span.count > 0:
        table.add_row(
            "  " * depth + span.name,
            f"{span.count:,}",
            f"{span.inclusive_seconds:,.3f}",
            f"{span.inclusive_seconds / total:.1%}" if total else "-",
            f"{span.exclusive_seconds:,.3f}",
            f"{1000 * span.inclusive_seconds / span.count:,.3f}",
        )
    for child in span.children.values():
        _add_rows(table, child, depth=depth + 1, total=total)
