"""The profile of a run: which calls are timed, and the files it is written to.

result = run_experiment(..., settings=RunSettings(parts=(ProfileParameters(),)))
print(result.parts["profile"].value.parts())        # seconds by name
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import ClassVar

import torch

from coach_rl.configuration.strict_json import plain_json, write_json
from coach_rl.core.interfaces import MarkRenderable, Renderable
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import timed_calls
from coach_rl.extensions.looking.profiler import Profile, Profiler
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.run_parts import PartResult, RunContext, RunPart, Written
from coach_rl.sessions.settings import RunPartParameters, RunSettings


@parameter_class
class ProfileParameters(RunPartParameters):
    """Times the calls of a run, in profile.json and trace.json of its folder."""

    name: ClassVar[str] = "profile"

    def build(self, settings: RunSettings) -> RunPart:  # noqa: ARG002
        return ProfiledRun()

    def join(
        self, graph_manager: GraphManager, folder: RunFolder, *, process: str
    ) -> Callable[[], None]:
        timed = RunProfile(graph_manager, process=process)

        def write() -> None:
            with suppress(OSError):  # the run warns of its own profile
                timed.write(timed.profile(), folder.path)

        return write


class ProfiledRun(RunPart):
    """Times the calls of a run; the profile is written however the run ends."""

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        self._folder = run.folder.path
        with closing(RunProfile(run.graph_manager)) as timed:
            timed.time_parts(run.sinks)
            timed.time(run.keeper, "save", "checkpoint")
            try:
                yield
            finally:
                self._profile = timed.profile()
                try:
                    timed.write(self._profile, self._folder)
                except OSError as error:
                    run.failures.note("profiles", "the profile", error)

    def result(self) -> PartResult:
        file = self._folder / "profile.json"
        written = Written(what="profile", path=file, note="; trace.json for Perfetto")
        return PartResult(value=self._profile, tables=(self._profile.table(),), written=(written,))


class RunProfile:
    """Times the calls of a run's parts, in one of its processes, until it is closed.

    Args:
        graph_manager: The run; its graph is built.
        process: Name of the process, where it is not the run's own; part of the files' names.
    """

    def __init__(self, graph_manager: GraphManager, *, process: str = "") -> None:
        graph = graph_manager.graph
        self._process = process
        self._has_put_aside = False
        self._profiler = profiler = _new_profiler(graph.runtime.device)
        self.time(graph_manager.evaluations, "play", "evaluation")
        for watcher in graph.watchers:
            self.time_parts(watcher)
        profiler.time(graph, "tick", "tick")
        for stack in graph.stacks:
            for level in stack.levels:
                profiler.time(level, "decide", level.name, "decide")
                profiler.time(level, "process", level.name, "process")
            for method in ("reset", "send", "recv"):
                profiler.time(stack.simulators, method, "environment")
            if isinstance(stack.simulators, Renderable):
                profiler.time(stack.simulators, "render", "draw")
            if isinstance(stack.simulators, MarkRenderable):
                profiler.time(stack.simulators, "render_ended", "draw")
            self.time_parts(stack.simulators)
        for name, agent in graph.agents.items():
            profiler.time(agent, "act", "act")
            profiler.time(agent, "observe", "observe")
            profiler.time(agent, "train", name, "train")
            self.time_parts(agent)

    def time(self, owner: object, method: str, name: str) -> None:
        """Time the calls of one more method; see `Profiler.time`."""
        self._profiler.time(owner, method, name)

    def time_parts(self, whole: object) -> None:
        """Time the calls that an object names, and those of its parts."""
        for call in timed_calls(whole):
            self.time(*call)

    def close(self) -> None:
        """Time no more calls."""
        self._profiler.stop()

    def profile(self) -> Profile:
        """The profile until now."""
        return self._profiler.profile(process=self._process or "main")

    def write(self, profile: Profile, folder: Path) -> None:
        """Write profile.json and trace.json; those of an earlier part of the run get a number.

        Raises:
            OSError: They cannot be written.
        """
        ending = f"_{self._process}.json" if self._process else ".json"
        files = [folder / f"{stem}{ending}" for stem in ("profile", "trace")]
        if not self._has_put_aside:
            _put_aside(files)
            self._has_put_aside = True
        write_json(files[0], plain_json(profile.as_json()))
        profile.write_trace(files[1])


def _new_profiler(device: str) -> Profiler:
    """A profiler for a graph on a device; on a GPU it waits for it around every call."""
    if not device.startswith("cuda"):
        return Profiler()

    def clock() -> int:
        torch.cuda.synchronize(device)
        return time.perf_counter_ns()

    return Profiler(clock, waits_for_gpu=True)


def _put_aside(files: list[Path]) -> None:
    """Rename files that are there, all with the first number that is free."""
    number = 1
    while any(file.with_name(f"{file.stem}.{number}.json").exists() for file in files):
        number += 1
    for file in files:
        if file.exists():
            file.rename(file.with_name(f"{file.stem}.{number}.json"))
