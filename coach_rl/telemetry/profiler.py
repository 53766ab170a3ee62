"""The cost of a run: the tree of its calls with their times, and its use of the machine.

profiler = Profiler()
profiler.time(environment, "recv", "environment")   # from now on every call is timed
...
profiler.stop()                                     # and from now on none is
profile = profiler.profile(process="main")
print(profile.parts())                              # seconds by name, without those of calls inside

A method is timed by a function that stands before it on the object itself. What is not profiled
runs the code it always runs. `ResourceSampler` measures processor, memory and GPUs.
"""

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import psutil  # type: ignore[import-untyped]  # has no types
import torch
from rich.table import Table as RichTable

from coach_rl.core.errors import warn
from coach_rl.core.file_writing import without_links
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
MIB = 2**20


class Node:
    """A place in the tree: the calls of one name below one parent.

    Args:
        name: Its name.
        parent: Where it stands; None for the root.
    """

    def __init__(self, name: str, parent: "Node | None" = None) -> None:
        self.name, self.parent = name, parent
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
        self._clock, self._waits_for_gpu = clock, waits_for_gpu
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
        clock, name = self._clock, path[-1]
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


class ResourceSampler:
    """Measures this process and its children; there is no thread, only calls.

    sampler = ResourceSampler(every_seconds=10.0)
    scalars |= sampler.sample_if_due()              # `resources/...`, empty where none is due

    Args:
        every_seconds: Least time between two samples; one takes a millisecond or more.
    """

    def __init__(self, *, every_seconds: float = 10.0) -> None:
        self._every_seconds = every_seconds
        self._process = psutil.Process()
        self._sampled_at = time.monotonic()
        self._cpu_seconds, _, _ = self._usage()
        self._nvml = _nvml() if torch.cuda.is_available() else None

    def sample_if_due(self) -> dict[str, float]:
        """The scalars, with the processor's use since the last sample; empty where none is due."""
        now = time.monotonic()
        elapsed = now - self._sampled_at
        if elapsed < self._every_seconds:
            return {}
        cpu_seconds, memory, processes = self._usage()
        used = max(0.0, cpu_seconds - self._cpu_seconds)
        self._sampled_at, self._cpu_seconds = now, cpu_seconds
        scalars = {
            "resources/cpu_percent": 100 * used / elapsed,
            "resources/memory_mib": memory / MIB,
        }
        if torch.cuda.is_available():
            gpus = range(torch.cuda.device_count())
            held = sum(torch.cuda.memory_allocated(gpu) for gpu in gpus)
            reserved = sum(torch.cuda.memory_reserved(gpu) for gpu in gpus)
            scalars["resources/gpu_memory_mib"] = held / MIB
            scalars["resources/gpu_memory_reserved_mib"] = reserved / MIB
        if self._nvml is not None:
            scalars |= _gpu_usage(self._nvml, processes)
        return scalars

    def _usage(self) -> tuple[float, int, set[int]]:
        """Processor seconds so far, resident bytes now, and the ids, over the process tree."""
        seconds, memory, processes = 0.0, 0, set()
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    memory += process.memory_info().rss
            except psutil.NoSuchProcess:  # ended since; included in its parent's times
                continue
            # With the times of children that have ended, the sum never forgets what was used.
            seconds += times.user + times.system + times.children_user + times.children_system
            processes.add(process.pid)
        return seconds, memory, processes


def _nvml() -> ModuleType | None:
    """NVIDIA's management library; None without the extra `gpu`, or without a driver."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return cast(ModuleType, pynvml)


def _gpu_usage(nvml: ModuleType, processes: set[int]) -> dict[str, float]:
    """Load and memory of the GPUs on which these processes are; empty if none of them is on any.

    Some drivers, as in containers, do not list the processes of a GPU: then it is empty as well.
    """
    percent, held = 0.0, []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            own = [
                each.usedGpuMemory
                for each in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
                if each.pid in processes
            ]
            if own:
                held += own
                percent += nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
    except nvml.NVMLError:  # a GPU that doesn't support one of the queries
        return {}
    if not held:
        return {}
    scalars = {"resources/gpu_percent": float(percent)}
    if None not in held:  # not every driver reports the amount
        scalars["resources/gpu_memory_all_mib"] = sum(held) / MIB
    return scalars
