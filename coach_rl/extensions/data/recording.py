"""Recording episodes as a data set: `coach evaluate RUN --record FILE.npz`, `coach train ...` too.

What is recorded lies in the environment's own spaces, before any filter: the observations that it
showed, the actions that it was sent, its rewards and its ends. Episodes that an evaluation does not
count, as they were not over with it, are left out; those that are open when training ends are cut
off there. Where one agent explores whose probabilities are
known, there are the log-probabilities of its actions, too (`action_probabilities`), unless some of
them have none.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, ClassVar

import numpy as np

from coach_rl.configuration.file_writing import unused
from coach_rl.core.errors import (
    ConfigurationError,
    NonFiniteError,
    RunError,
    SpaceError,
    warn,
)
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
from coach_rl.core.shown_text import readable
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import EnvironmentSteps
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
from coach_rl.memories.replay_memory import free_host_bytes
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
        file = _expanded(self.file)
        if file.suffix != ".npz":
            raise ConfigurationError(f"--record takes a file that ends with .npz, got {file}")
        _check_writable(file)

    def build(self, settings: RunSettings) -> RunPart:  # noqa: ARG002
        return RecordedEpisodes(_expanded(self.file), self.infos)


def _expanded(file: Path) -> Path:
    """The path with the home folder in the place of `~`."""
    try:
        return file.expanduser()
    except RuntimeError as error:
        raise ConfigurationError(
            f"--record cannot write {file}: {error}; give the path of the folder"
        ) from error


def _check_writable(file: Path) -> None:
    """Raise `ConfigurationError` unless it is a new file that can be written.

    Folders that are missing are made for that, and removed again.
    """
    folder = file.absolute().parent
    missing: list[Path] = []
    try:
        if file.exists():
            raise ConfigurationError(f"{file} exists already; record into another file")
        missing += [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"--record cannot write {file}: {error.strerror} ({error.filename}); record into a "
            "folder that can be written to"
        ) from error
    finally:
        for each in missing:
            with suppress(OSError):  # it was not made, or another process uses it by now
                each.rmdir()


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
        clock = run.graph_manager.graph.clock
        if isinstance(clock.planned, EnvironmentSteps):
            _warn_of_size(recorder.spaces, clock.planned.count - clock.environment_steps)
        try:
            yield
        finally:
            recorder.cut()
            if recorder.has_episodes:
                try:
                    self._written = (self._write(recorder, run.folder.path),)
                except OSError as error:  # the run is over, and stays whole
                    run.failures.note("recordings", f"the recording {self._file}", error)
            else:
                warn(f"nothing was acted in the world, so that {self._file} is not written")

    def follow(self, record: LogRecord) -> Iterable[LogRecord]:
        """No records; episodes that a roll-back leaves are cut off."""
        if record.kind == "roll_back":
            self._training.cut()
        return ()

    def evaluated(self, file: Path) -> Iterator[Written]:
        try:
            yield self._write(self._recorder, file.parent)
        except OSError as error:
            raise RunError(
                f"the recording {self._file} cannot be written, nor one in {file.parent}: "
                f"{error.strerror}; free space, and evaluate again"
            ) from error

    def result(self) -> PartResult:
        return PartResult(written=self._written)

    def _write(self, recorder: "EpisodeCollector", folder: Path) -> Written:
        """Write what was collected.

        Args:
            recorder: What has collected it.
            folder: One of the run, for where the file cannot be written.
        """
        recorded = recorder.recorded()
        path = self._saved(recorded, recorder.spaces, folder)
        about = f"{len(recorded):,} transitions of {len(recorded.begins):,} episodes"
        if recorder.has_some_log_prob:
            about += "; log-probabilities are left out, as some actions have none"
        if unreported := recorder.unreported:
            about += f"; the environment has never reported {', '.join(unreported)}, which is 0"
        return Written(what="recorded as", path=path, note=f" ({about})")

    def _saved(self, recorded: Recorded, known: EnvironmentSpaces, folder: Path) -> Path:
        """The path of the written file: a free name beside, or in `folder`, where it has to be."""
        reason = "it exists by now"
        failure: OSError | None = None
        for wanted in (self._file, folder / self._file.name):
            path = wanted
            try:
                path = unused(wanted)
                write_file(recorded, path, known)
            except OSError as error:
                failure = error
                reason = error.strerror or str(error)
                continue
            if path != self._file:
                warn(f"the recording is written to {path}, not to {self._file}: {reason}")
            return path
        assert failure is not None
        raise failure


def _warn_of_size(known: EnvironmentSpaces, steps: int) -> None:
    """Warn where the observations of so many steps take over half of the free memory."""
    spaces = known.observation.spaces.values()
    one = sum(np.dtype(each.dtype).itemsize * int(np.prod(each.shape or ())) for each in spaces)
    needed = 2 * steps * one  # with the next ones
    free = free_host_bytes()
    if 2 * needed > free:  # written from a copy
        warn(
            f"--record keeps what it records in memory until the end: some {readable(needed)} of "
            f"observations in {steps:,} steps, and as much again to write them, where "
            f"{readable(free)} are free; train for fewer steps, or record evaluations of the run"
        )


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
        self._some_log_prob = False
        self._all_log_prob = True

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
                self._lose(int(row))
                self._now[row] = take(answer.first_observation, np.array([place]))
                continue
            here = slice(place, place + 1)
            step: dict[str, Any] = {
                REWARDS: answer.reward[here],
                TERMINATED: answer.terminated[here],
                TRUNCATED: answer.truncated[here] & ~answer.terminated[here],
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

    @property
    def has_episodes(self) -> bool:
        """True if an episode is over."""
        return bool(self._finished)

    @property
    def has_some_log_prob(self) -> bool:
        """True if log-probabilities of some actions are known, and not of all."""
        return self._some_log_prob and not self._all_log_prob

    def recorded(self) -> Recorded:
        """The episodes that are over, in the columns that all of their steps have."""
        left_out = set() if self._all_log_prob else {ACTION_LOG_PROB}
        return Recorded.of(
            {path: column for path, column in each.items() if path not in left_out}
            for each in self._finished
        )

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

    def _lose(self, row: int) -> None:
        """Leave out the open episode of a row."""
        self._open[row] = []

    def _finish(self, row: int) -> None:
        steps = self._open[row]
        known = [ACTION_LOG_PROB in step for step in steps]
        self._some_log_prob |= any(known)
        self._all_log_prob &= all(known)
        paths = [path for path in steps[0] if all(path in step for step in steps)]
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
        for row in range(len(self._open)):
            self._lose(row)
        del self._actions

    def _lose(self, row: int) -> None:
        """Truncate the open episode of a row."""
        if steps := self._open[row]:
            steps[-1][TRUNCATED] = np.ones(1, np.bool_)
            self._finish(row)

    def _note_actions(self, action: Action, rows: IntArray) -> None:
        if not self.has_begun:
            self.begin(self._stack, np.full(self._stack.num_envs, np.iinfo(np.int64).max))
        super()._note_actions(action, rows)
