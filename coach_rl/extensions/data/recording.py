"""Recording episodes as a data set: `coach evaluate RUN --record FILE.npz`, `coach train ...` too.

What is recorded lies in the environment's own spaces, before any filter: the observations that it
showed, the actions that it was sent, its rewards and its ends. Episodes that an evaluation does not
count, as they were not over with it, are left out; those that are open when training ends are cut
off there. Where one agent explores whose probabilities are
known, there are the log-probabilities of its actions, too (`action_probabilities`).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from coach_rl.core.errors import ConfigurationError, NonFiniteError, SpaceError, warn
from coach_rl.core.log_records import LogRecord
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import (
    Action,
    Array,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.data.action_probabilities import ACTION_LOG_PROB, recorded_log_prob
from coach_rl.extensions.data.files import write_file
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.watcher import EvaluationWatcher
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    INFOS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    extra,
)
from coach_rl.sessions.run_parts import PartResult, RunContext, RunPart, Written
from coach_rl.sessions.settings import RunPartParameters, RunSettings


@parameter_class
class RecordingParameters(RunPartParameters):
    """A data set of the episodes of an evaluation, or of training, without its evaluations."""

    name: ClassVar[str] = "recording"

    file: Path
    """The file that is written; it ends with .npz and does not exist yet (required)."""
    infos: tuple[str, ...] = ()
    """Names of the environment's infos that are recorded with transitions, one number each."""

    def check(self, settings: RunSettings) -> None:  # noqa: ARG002 - of all parts
        if self.file.suffix != ".npz":
            raise ConfigurationError(f"--record takes a file that ends with .npz, got {self.file}")
        if self.file.exists():
            raise ConfigurationError(f"{self.file} exists already; record into another file")

    def build(self, settings: RunSettings) -> RunPart:  # noqa: ARG002
        return RecordedEpisodes(self.file, self.infos)


class RecordedEpisodes(RunPart):
    """Writes the episodes of an evaluation, or of training, into a file.

    Args:
        file: The file.
        infos: Names of the infos that are recorded.
    """

    def __init__(self, file: Path, infos: tuple[str, ...]) -> None:
        self._file = file
        self._infos = infos
        self._written: tuple[Written, ...] = ()
        self._recorder = EpisodeCollector(infos)
        self.watchers: Sequence[EvaluationWatcher] = (self._recorder,)

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:
        """Record training, and none of its evaluations."""
        stack = run.graph_manager.graph.training
        if not stack.source.acts_here:
            raise ConfigurationError(
                f"--record writes what simulators of this process show, and those are in "
                f"{stack.source.name}; leave out --record, or collect in this process"
            )
        self._recorder.is_recording = False
        recorder = self._training = TrainingCollector(self._infos)
        recorder.prepare(stack)
        try:
            yield
        finally:
            recorder.cut()
            if len(recorder.recorded()):
                self._written = (self._write(recorder),)
            else:
                warn(f"nothing was acted in the world, so that {self._file} is not written")

    def follow(self, record: LogRecord) -> Iterable[LogRecord]:
        """No records; episodes that a roll-back leaves are cut off."""
        if record.kind == "roll_back":
            self._training.cut()
        return ()

    def evaluated(self, file: Path) -> Iterator[Written]:  # noqa: ARG002 - a file of its own
        yield self._write(self._recorder)

    def result(self) -> PartResult:
        return PartResult(written=self._written)

    def _write(self, recorder: "EpisodeCollector") -> Written:
        """Write what was collected."""
        recorded = recorder.recorded()
        path = write_file(recorded, self._file, recorder.spaces)
        about = f"{len(recorded):,} transitions of {len(recorded.begins):,} episodes"
        if unreported := recorder.unreported:
            about += f"; the environment has never reported {', '.join(unreported)}, which is 0"
        return Written(what="recorded as", path=path, note=f" ({about})")


class EpisodeCollector(EvaluationWatcher):
    """Collects the transitions of the episodes that evaluations play.

    Args:
        infos: Names of the environment's infos that are collected, too.
    """

    spaces: EnvironmentSpaces
    """The environment's."""

    def __init__(self, infos: tuple[str, ...] = ()) -> None:
        self.is_recording = True
        """False where evaluations are not collected."""
        self._finished: list[dict[str, Array]] = []
        self._infos = infos
        self._reported: set[str] = set()

    def prepare(self, stack: Stack) -> None:
        """Note the actions that the simulators are sent from now on."""
        simulators = stack.simulators
        self.spaces = simulators.spaces
        self._stack = stack
        send = simulators.send

        def noting(directive: Directive | Action, rows: IntArray | None = None) -> None:
            action = directive.action if isinstance(directive, Directive) else directive
            self._note_actions(action, np.arange(stack.num_envs) if rows is None else rows)
            send(directive, rows)

        simulators.send = noting  # type: ignore[method-assign]  # of this stack alone

    def begin(self, stack: Stack, due: IntArray) -> None:
        rows = np.arange(stack.num_envs)
        shown = stack.levels[-1].shown(rows)
        now = {key: shown[key] for key in self.spaces.observation.spaces}
        self._due = due.copy()
        self._now: list[Observation] = [take(now, np.array([row])) for row in rows]
        self._open: list[list[dict[str, Any]]] = [[] for _ in rows]
        self._actions: list[Any] = [None for _ in rows]

    def note_tick(self, answer: EnvResponse) -> None:
        if not self.is_recording:
            return
        infos = self._infos_of(answer)
        for place, row in enumerate(answer.rows):
            if not self._due[row]:
                continue
            if answer.lost[place]:  # the simulator failed, and begins another episode
                self._open[row] = []
                self._now[row] = take(answer.first_observation, np.array([place]))
                continue
            here = slice(place, place + 1)
            step: dict[str, Any] = {
                REWARDS: answer.reward[here],
                TERMINATED: answer.terminated[here],
                TRUNCATED: answer.truncated[here],
                DURATIONS: answer.duration[here],
                **{f"{OBSERVATIONS}{key}": array for key, array in self._now[row].items()},
                **self._actions[row],
                **take(infos, np.array([place])),
            }
            for key in self.spaces.observation.spaces:
                step[f"{NEXT_OBSERVATIONS}{key}"] = answer.observation[key][here].copy()
            self._open[row].append(step)
            self._now[row] = take(answer.first_observation, np.array([place]))
            if answer.terminated[place] or answer.truncated[place]:
                self._finish(int(row))

    @property
    def has_begun(self) -> bool:
        """True while episodes are collected."""
        return hasattr(self, "_actions")

    @property
    def unreported(self) -> list[str]:
        """The names of infos that the environment has never reported."""
        return [name for name in self._infos if name not in self._reported]

    def recorded(self) -> Recorded:
        """The episodes that are over."""
        return Recorded.of(self._finished)

    def _infos_of(self, answer: EnvResponse) -> dict[str, Array]:
        """The columns of infos by path, float32 [R] each; 0 where an info is not reported.

        Raises:
            SpaceError: An info is not one number a row.
            NonFiniteError: It has numbers that data sets don't have.
        """
        found = {}
        for name in self._infos:
            values = answer.info.get(name)
            if values is None:
                values = np.zeros(len(answer.rows))
            else:
                self._reported.add(name)
            if values.ndim != 1 or values.dtype.kind not in "biuf":
                raise SpaceError(
                    f"the info '{name}' is {values.dtype} of shape {values.shape[1:]}, and data "
                    "sets have one number a row; leave it out of --record_infos"
                )
            column = values.astype(np.float32)
            if not np.isfinite(column).all():
                raise NonFiniteError(
                    f"the info '{name}' is {values[~np.isfinite(column)][0]}, which data sets "
                    "don't have; leave it out of --record_infos"
                )
            found[extra(f"{INFOS}{name}")] = column
        return found

    def _note_actions(self, action: Action, rows: IntArray) -> None:
        if not self.has_begun or not self.is_recording:
            return
        columns: dict[str, Array] = (
            {f"{ACTION_PARTS}{key}": part for key, part in action.items()}
            if isinstance(action, dict)
            else {ACTIONS: action}
        )
        levels = self._stack.levels
        if len(levels) == 1:
            log_prob = recorded_log_prob(levels[0], action, rows, self._stack.clock)
            columns |= {} if log_prob is None else {ACTION_LOG_PROB: log_prob}
        for place, row in enumerate(rows):
            self._actions[row] = take(columns, np.array([place]))

    def _finish(self, row: int) -> None:
        steps = self._open[row]
        paths = steps[0]
        self._finished.append(
            {path: np.concatenate([step[path] for step in steps]) for path in paths}
        )
        self._open[row] = []
        self._due[row] -= 1


class TrainingCollector(EpisodeCollector):
    """Collects the transitions of the episodes that training plays, from the first decision on."""

    def prepare(self, stack: Stack) -> None:
        super().prepare(stack)
        stack.signals.notes += (self.note_tick,)

    def cut(self) -> None:
        """Truncate the episodes that are open; others begin with the next decisions."""
        if not self.has_begun:
            return
        for row, steps in enumerate(self._open):
            if steps:
                steps[-1][TRUNCATED] = np.ones(1, np.bool_)
                self._finish(row)
        del self._actions

    def _note_actions(self, action: Action, rows: IntArray) -> None:
        if not self.has_begun:
            self.begin(self._stack, np.full(self._stack.num_envs, np.iinfo(np.int64).max))
        super()._note_actions(action, rows)
