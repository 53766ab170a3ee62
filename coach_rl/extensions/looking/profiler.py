"""The time that a run takes: the tree of its calls with their times.

profiler = Profiler()
profiler.time(environment, "recv", "environment")   # from now on every call is timed
...
profiler.stop()                                     # and from now on none is
profile = profiler.profile(process="main")
print(profile.parts())                              # seconds by name, without those of calls inside

A method is timed by a function that stands before it on the object itself. What is not profiled
runs the code it always runs.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from rich.table import Table as RichTable

from coach_rl.configuration.file_writing import without_links
from coach_rl.core.errors import warn
from coach_rl.telemetry.tables import Column, rich_table, table

Nanoseconds = int
TRACE_ENDS = 50_000
"""Calls that a trace keeps of a run's beginning, or a few more, and of its end."""
_BUCKETS_PER_OCTAVE = 32
_OCTAVES = 64
_IN_CAPTION = 5
"""Parts below the table, those that took longest."""
_FOLD_AT = 4096
"""Durations after which they are added up."""
Call = tuple[str, Nanoseconds, Nanoseconds]
"""Its name, its beginning and its end."""


class Node:
    """A place in the tree: the calls of one name below one parent.

    Args:
        name: Its name.
        parent: Where it stands; None for the root.
    """

    def __init__(self, name: str, parent: "Node | None" = None) -> None:
        self.name = name
        self.parent = parent
        self.children: dict[str, Node] = {}
        self.recent: list[Nanoseconds] = []
        """Durations that are not added up yet."""
        self.calls = 0
        """Number of calls; 0 for a group, such as a level, whose time is that of its children."""
        self.longest: Nanoseconds = 0
        self._total: Nanoseconds = 0
        self._histogram = np.zeros(_OCTAVES * _BUCKETS_PER_OCTAVE, np.int64)

    @property
    def inclusive(self) -> float:
        """Seconds in its calls."""
        if not self.calls:
            return sum(child.inclusive for child in self.children.values())
        return self._total / 1e9

    @property
    def exclusive(self) -> float:
        """Seconds in its calls without those that they made."""
        return self.inclusive - sum(child.inclusive for child in self.children.values())

    @property
    def mean(self) -> float:
        """Seconds of a call."""
        return self._total / 1e9 / self.calls

    @property
    def p99(self) -> float:
        """Seconds within which 99 of 100 calls are over; at most 2.2 % too long."""
        bucket = int(np.searchsorted(self._histogram.cumsum(), 0.99 * self.calls))
        upper_end = 2 ** ((bucket + 1) / _BUCKETS_PER_OCTAVE)
        return min(upper_end, float(self.longest)) / 1e9

    def child(self, *path: str) -> "Node":
        """The node below this one, made where there is none yet."""
        node = self
        for name in path:
            node = node.children.setdefault(name, Node(name, node))
        return node

    def fold(self) -> None:
        """Add the times since the last call; the memory of a node doesn't grow."""
        if not self.recent:
            return
        durations = np.maximum(self.recent, 1)
        self.recent.clear()
        self.calls += len(durations)
        self.longest = max(self.longest, int(durations.max()))
        self._total += int(durations.sum())
        buckets = (np.log2(durations) * _BUCKETS_PER_OCTAVE).astype(np.int64)
        self._histogram += np.bincount(buckets, minlength=len(self._histogram))

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Node"]]:
        """This node and all below it, with their depths; those that took longest come first."""
        yield depth, self
        for child in sorted(self.children.values(), key=lambda each: -each.inclusive):
            yield from child.walk(depth + 1)

    def as_json(self) -> dict[str, object]:
        """The node and all below it, for profile.json."""
        numbers: dict[str, object] = {"calls": None}
        if self.calls:
            numbers = {
                "calls": self.calls,
                "mean_seconds": self.mean,
                "p99_seconds": self.p99,
                "longest_seconds": self.longest / 1e9,
            }
        return {
            "name": self.name,
            "inclusive_seconds": self.inclusive,
            "exclusive_seconds": self.exclusive,
            **numbers,
            "children": [child.as_json() for child in self.children.values()],
        }


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A finished profile of one process."""

    root: Node
    process: str
    """Name of the process: `main`, or what it does for it."""
    waits_for_gpu: bool
    """True if the GPU was waited for before and after every call."""
    began: Nanoseconds
    first: tuple[Call, ...]
    """Calls of the run's beginning, by their ends, for the trace."""
    last: tuple[Call, ...]
    """Those of its end."""

    def parts(self) -> dict[str, float]:
        """Seconds by name, wherever in the tree it stands, without those of calls inside."""
        seconds: dict[str, float] = {}
        for _, node in self.root.walk():
            seconds[node.name] = seconds.get(node.name, 0.0) + node.exclusive
        return dict(sorted(seconds.items(), key=lambda each: -each[1]))

    def as_json(self) -> dict[str, object]:
        """The content of profile.json."""
        return {
            "process": self.process,
            "process_id": os.getpid(),
            "waits_for_gpu": self.waits_for_gpu,
            "parts": self.parts(),
            "tree": self.root.as_json(),
        }

    def table(self) -> RichTable:
        """The tree as readable text."""
        whole = self.root.inclusive
        columns = (
            Column("", lambda entry: f"{'  ' * entry[0]}{entry[1].name}", is_text=True),
            Column("calls", lambda entry: entry[1].calls or None, "{:,}".format),
            Column("seconds", lambda entry: entry[1].inclusive, "{:,.2f}".format),
            Column("own", lambda entry: entry[1].exclusive, "{:,.2f}".format),
            Column("own %", lambda entry: entry[1].exclusive / whole, "{:.1%}".format),
            Column("mean", lambda entry: entry[1].mean if entry[1].calls else None, shown_duration),
            Column("p99", lambda entry: entry[1].p99 if entry[1].calls else None, shown_duration),
        )
        most = list(self.parts().items())[:_IN_CAPTION]
        caption = ", ".join(f"{name} {seconds / whole:.0%}" for name, seconds in most)
        entries = table(columns, self.root.walk(), title="Profile")
        return rich_table(entries, folded=0, caption=caption, caption_justify="left")

    def write_trace(self, path: Path) -> None:
        """Write the calls for chrome://tracing or Perfetto."""
        process = os.getpid()
        with open(path, "w", opener=without_links) as file:
            name = {"name": "process_name", "ph": "M", "pid": process, "tid": 1}
            file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            file.write(json.dumps({**name, "args": {"name": self.process}}))
            for event in self._events():
                file.write(f",\n{json.dumps({**event, 'ph': 'X', 'pid': process})}")
            file.write("\n]}\n")

    def _events(self) -> Iterator[dict[str, object]]:
        for name, begin, end in chain(self.first, self.last):
            yield {"name": name, "tid": 1, **self._times(begin, end)}
        calls = sum(node.calls for depth, node in self.root.walk() if depth)
        left_out = calls - len(self.first) - len(self.last)
        if left_out:
            gap = self._times(self.first[-1][2], self.last[0][2])
            yield {"name": f"{left_out:,} calls left out", "tid": 2, **gap}

    def _times(self, begin: Nanoseconds, end: Nanoseconds) -> dict[str, object]:
        return {"ts": (begin - self.began) / 1e3, "dur": (end - begin) / 1e3}


class Profiler:
    """Times the calls of objects. For one thread: that of the run.

    Args:
        clock: Nanoseconds from some moment on.
        waits_for_gpu: Whether that clock waits for what the GPU is at.
    """

    def __init__(
        self,
        clock: Callable[[], Nanoseconds] = time.perf_counter_ns,
        *,
        waits_for_gpu: bool = False,
    ) -> None:
        self._clock = clock
        self._waits_for_gpu = waits_for_gpu
        self._root = self._open = Node("run")
        self._first: list[Call] = []
        self._last: deque[Call] = deque(maxlen=TRACE_ENDS)
        self._keep: Callable[[Call], None] = self._first.append
        self._restore: list[tuple[object, str, object]] = []
        self._began = clock()

    def time(self, owner: object, method: str, *path: str) -> None:
        """Time the calls of a method until `stop`.

        Args:
            owner: The object.
            method: The method's name.
            path: Its name in the profile, after those of the groups it belongs to.
        """
        call = getattr(owner, method)
        before = getattr(owner, "__dict__", {}).get(method)
        try:
            object.__setattr__(owner, method, self._timed(call, path))  # frozen ones as well
        except AttributeError:
            kind = type(owner).__name__
            warn(
                f"the profile leaves out {'/'.join(path)}: {kind}.{method} cannot be timed, "
                f"because {kind} has __slots__"
            )
        else:
            self._restore.append((owner, method, before))

    def stop(self) -> None:
        """Leave every object as it was."""
        while self._restore:
            owner, method, before = self._restore.pop()
            if before is None:
                object.__delattr__(owner, method)
            else:
                object.__setattr__(owner, method, before)

    def profile(self, *, process: str = "main") -> Profile:
        """The profile from the beginning until now.

        Args:
            process: Name of this process.
        """
        for _, node in self._root.walk():
            node.fold()
        now = self._clock()
        whole = Node("run")
        whole.children = self._root.children
        whole.recent.append(now - self._began)
        whole.fold()
        return Profile(
            root=whole,
            process=process,
            waits_for_gpu=self._waits_for_gpu,
            began=self._began,
            first=tuple(self._first),
            last=tuple(self._last),
        )

    def _timed(self, call: Callable[..., object], path: tuple[str, ...]) -> Callable[..., object]:
        """The call, timed; what it costs is paid for every call, so it does little."""
        clock = self._clock
        name = path[-1]
        nodes: dict[Node, Node] = {}  # by their parents

        def timed(*args: object, **named: object) -> object:
            parent = self._open
            node = nodes.get(parent)
            if node is None:
                node = nodes[parent] = parent.child(*path)
            self._open = node
            begin = clock()
            try:
                return call(*args, **named)
            finally:
                end = clock()
                self._open = parent
                node.recent.append(end - begin)
                self._keep((name, begin, end))
                if len(node.recent) == _FOLD_AT:
                    self._fold(node)

        return timed

    def _fold(self, node: Node) -> None:
        node.fold()
        if len(self._first) >= TRACE_ENDS:
            self._keep = self._last.append


def shown_duration(seconds: float) -> str:
    """A duration in the unit that suits it: `12.3 µs`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
