"""All rows spread over workers; rows of a worker that is lost play their episodes again."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from coach_rl.core.errors import CoachError, ConfigurationError, EnvironmentFault
from coach_rl.core.records import Action, Array, IntArray, Observation
from coach_rl.core.shown_text import shown_level
from coach_rl.core.state import State
from coach_rl.environments.faults import Cause, RowFailure, first_of_each
from coach_rl.environments.gymnasium.layout import Info, Layout
from coach_rl.environments.gymnasium.recipe import Recipe
from coach_rl.environments.gymnasium.rows import (
    ActionHistory,
    EpisodeHistory,
    LocalRows,
    RowsAnswer,
    RowsStart,
    history_of,
    require_one_layout,
)
from coach_rl.environments.gymnasium.shared_observations import (
    LEAST_BYTES,
    SharedObservations,
    SharingRows,
    bytes_of,
    new_shared_file,
    with_shared,
)
from coach_rl.environments.processors import usable_processors
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import Progress, StartMethod, WorkerProcess

T = TypeVar("T")
_TOO_SLOW = (
    "; that is faults.reset_seconds, in which a worker starts Python, imports the environment's "
    "modules and makes its environments: set a longer one"
)


class TimeLimits(NamedTuple):
    """Seconds that one row may take."""

    step: float
    reset: float


class RowLimit:
    """The time limits of a worker's rows; a `TimeLimit` of its process.

    Args:
        limits: Seconds that one row may take.
        start_method: How the process starts.
    """

    def __init__(self, limits: TimeLimits, start_method: StartMethod) -> None:
        self._limits = limits
        self.shortest = min(limits)
        self.progress: Progress = multiprocessing.get_context(start_method).RawValue("i", -1)
        """See `LocalRows.now`."""

    def seconds(self, at: int) -> float:
        """The limit of a step, or of a reset."""
        return self._limits[at < 0]

    def at_work(self) -> tuple[int, str]:
        """Index of the row at work, and its call."""
        now = self.progress.value
        return (now, "step") if now >= 0 else (-1 - now, "reset")


class RowsWorker(NamedTuple):
    """A worker process, and the rows in it."""

    process: WorkerProcess
    rows: list[int]
    limit: RowLimit


class _Split(NamedTuple):
    """Rows of a request, by the worker that has them."""

    rows: IntArray
    """The rows, [R]."""
    indices: dict[int, IntArray]
    """The places of each worker's rows in the request."""
    places: dict[int, IntArray]
    """The places of these rows in their worker."""


class WorkerRows:
    """All rows, spread over worker processes; does what `LocalRows` does.

    Args:
        recipe: How each row's environment is made.
        num_envs: N.
        processes: How many workers; None takes one per core, at most one per row.
        start_method: How processes start: spawn, forkserver or fork.
        limits: When a worker is taken to hang.
        keeps_actions: Whether the rows' episodes are remembered, so that they can be saved, and
            played again when their worker is lost.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        num_envs: int,
        processes: int | None,
        start_method: StartMethod,
        limits: TimeLimits,
        keeps_actions: bool = True,
    ) -> None:
        self._keeps_actions = keeps_actions
        self._recipe = recipe
        count = min(num_envs, processes or usable_processors())
        shares = np.array_split(np.arange(num_envs), count)
        self._home = np.concatenate([np.full(len(share), w) for w, share in enumerate(shares)])
        """[N] the worker of each row."""
        self._place = np.concatenate([np.arange(len(share)) for share in shares])
        """[N] the row's place in its worker."""
        self._last_split: _Split | None = None
        self._histories: list[EpisodeHistory | None] = [None] * num_envs
        """All that is needed to play each row's episode again; None where that is not known."""
        self._shown: Observation | None = None
        """[N, ...] what each row showed last; None before that is known."""
        self._workers: list[RowsWorker] = []
        self._shared: dict[int, SharedObservations] = {}
        """Observations that are shared with a worker, where they are large."""
        try:
            for share in shares:
                worker = self._started(share.tolist(), RowLimit(limits, start_method), start_method)
                self._workers.append(worker)
            layouts = self._layouts(self._every_worker())
            for layout in layouts:
                require_one_layout(layout, layouts[0], level=recipe.level)
        except BaseException:
            self.close()
            raise
        self.layout = layouts[0]
        for number in range(count):
            self._share(number)

    def reset(self, seeds: Sequence[int | None]) -> RowsStart:
        """Reset all rows; workers that were lost are started again."""
        for number, worker in enumerate(self._workers):
            if worker.process.is_lost:
                self._replace(number)
        self._histories = [None if seed is None else self._history(seed) for seed in seeds]
        self._shown = None
        starts = [
            self._revived(number, reply) if isinstance(reply, WorkerLost) else reply
            for number, reply in enumerate(self._replies(LocalRows.reset, self._shares(seeds)))
        ]
        places = [np.array(worker.rows, np.int64) for worker in self._workers]
        observation = _by_key([start.observation for start in starts])
        self._shown = {key: values.copy() for key, values in observation.items()}
        infos = [info for start in starts for info in start.infos]
        return RowsStart(observation, infos, _failures(starts, places))

    def rebuild(self, row: int, seed: int) -> RowsStart:
        """Start a row in a new environment."""
        number, place = int(self._home[row]), int(self._place[row])
        self._histories[row] = self._history(seed)
        try:
            (start,) = self._call(LocalRows.rebuild, {number: (place, seed)})
        except WorkerLost as lost:
            revived = self._revived(number, lost)
            failures = [(0, failure) for here, failure in revived.failures if here == place]
            start = RowsStart(_blank(self.layout, 1), [{}], failures)
        return start

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """Step some rows, all workers at once; see `LocalRows.step`."""
        split = self._split(rows)
        parts = {number: _part(action, here) for number, here in split.indices.items()}
        replies = self._replies(
            SharingRows.step,
            {number: (split.places[number], part) for number, part in parts.items()},
        )
        answers = [
            self._step_again(number, reply, rows[split.indices[number]], parts[number])
            if isinstance(reply, WorkerLost)
            else with_shared(reply, self._shared[number])
            if number in self._shared
            else reply
            for number, reply in zip(parts, replies, strict=True)
        ]
        merged = _merged(answers, list(split.indices.values()))
        self._remember(rows, action, merged)
        return merged

    def replays_episodes(self) -> bool:
        """See `LocalRows.replays_episodes`."""
        return any(self._call(LocalRows.replays_episodes, self._every_worker()))

    def snapshot(self) -> list[State]:
        """Each row's state."""
        parts = self._call(LocalRows.snapshot, self._every_worker())
        return [state for part in parts for state in part]

    def restore(self, states: Sequence[State]) -> None:
        """Restore each row from its state."""
        self._call(LocalRows.restore, self._shares(states))
        self._histories = [
            history_of(state, self.layout) if self._keeps_actions else None for state in states
        ]
        self._shown = self.layout.buffers(len(states))
        for row, state in enumerate(states):
            for index, values in enumerate(self._shown.values()):
                values[row] = state["observation"][str(index)]

    def render(self, row: int) -> Array:
        (frame,) = self._call(LocalRows.render, {int(self._home[row]): (int(self._place[row]),)})
        return np.asarray(frame)

    def close(self) -> list[str]:
        """End every worker; the warnings of environments that failed to close."""
        return [failure for worker in self._workers for failure in worker.process.close()]

    def _split(self, rows: IntArray) -> _Split:
        """The rows by their workers; the last split is kept, as most requests have all rows."""
        if self._last_split is None or not np.array_equal(self._last_split.rows, rows):
            home = self._home[rows]
            numbers = np.unique(home).tolist() or [0]  # which gives the form of an empty answer
            indices = {number: np.flatnonzero(home == number) for number in numbers}
            places = {number: self._place[rows[here]] for number, here in indices.items()}
            self._last_split = _Split(rows.copy(), indices, places)
        return self._last_split

    def _started(self, rows: list[int], limit: RowLimit, start_method: StartMethod) -> RowsWorker:
        """A new worker for these rows."""
        make = partial(SharingRows, self._recipe, rows, keeps_actions=self._keeps_actions)
        try:
            process = WorkerProcess(make, start_method=start_method, time_limit=limit)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"'{self._recipe.level}': {error}, or use vectorization='sync'"
            ) from error
        return RowsWorker(process, rows, limit)

    def _history(self, seed: int | None, start: State | None = None) -> EpisodeHistory | None:
        """An episode that begins; None where episodes are not remembered."""
        if not self._keeps_actions:
            return None
        return EpisodeHistory(seed, start, ActionHistory(self.layout.action_parts))

    def _replace(self, number: int) -> None:
        """Start a lost worker again; its rows have no episode."""
        self._workers[number].limit.progress.value = -1
        self._workers[number].process.restart()
        (layout,) = self._layouts({number: ()})
        require_one_layout(layout, self.layout, level=self._recipe.level)
        self._share(number)

    def _share(self, number: int) -> None:
        """Share observations with a worker that has started, where they are large."""
        count = len(self._workers[number].rows)
        if bytes_of(self.layout, count) < LEAST_BYTES:
            return
        path = new_shared_file(self.layout, count)
        try:
            self._shared[number] = SharedObservations(self.layout, count, path)
            self._call(SharingRows.share, {number: (path,)})
        except WorkerLost as lost:
            level = shown_level(self._recipe.level)
            raise EnvironmentFault(f"a worker of '{level}' failed at its start: {lost}") from lost
        finally:
            path.unlink()

    def _layouts(self, started: Mapping[int, tuple[()]]) -> list[Layout]:
        """The layouts of workers that have started.

        Raises:
            EnvironmentFault: One has not; its environments are made when it starts.
        """
        try:
            return self._call(LocalRows.shared_layout, started)
        except WorkerLost as lost:
            number = next(n for n in started if self._workers[n].process.is_lost)
            rows = self._workers[number].rows
            level = shown_level(self._recipe.level)
            raise EnvironmentFault(
                f"rows {rows[0]} to {rows[-1]} of '{level}' failed in construction: {lost}"
                f"{_TOO_SLOW if lost.is_hung else ''}"
            ) from lost

    def _revived(self, number: int, lost: WorkerLost) -> RowsStart:
        """Start a lost worker again, with every row where it was but the one that was at work.

        The other rows replay their episodes; one with random numbers of its own fails as well.
        """
        rows = self._workers[number].rows
        index, verb = self._workers[number].limit.at_work()
        cause: Cause = "hung" if lost.is_hung else "died"
        self._replace(number)
        by = rows[min(index, len(rows) - 1)]
        again = [row for row in rows if row != by and self._histories[row] is not None]
        observation = _blank(self.layout, len(rows))
        arrived: set[int] = set()
        try:
            indices = self._place[again].tolist()
            histories = [self._histories[row] for row in again]
            (start,) = self._call(LocalRows.replay, {number: (indices, histories)})
        except WorkerLost:
            self._replace(number)
        else:
            failed = first_of_each(start.failures)
            for n, row in enumerate(again):
                shows = {key: values[n] for key, values in start.observation.items()}
                if n not in failed and self._is_shown(row, shows):
                    arrived.add(row)
                    for key, value in shows.items():
                        observation[key][rows.index(row)] = value
        failures = []
        for place, row in enumerate(rows):
            if row not in arrived:
                company = "" if row == by else f", at work on row {by}, and took this one along"
                name = f"row {row} of '{shown_level(self._recipe.level)}'"
                message = f"{name} failed in {verb}: {lost}{company}"
                failures.append((place, RowFailure(row, cause, verb, message, {})))
        return RowsStart(observation, [{} for _ in rows], failures)

    def _is_shown(self, row: int, shows: Mapping[str, Array]) -> bool:
        """Return whether a row shows what it showed before its worker was lost."""
        shown = self._shown
        return shown is None or all(
            np.array_equal(value, shown[key][row]) for key, value in shows.items()
        )

    def _step_again(
        self, number: int, lost: WorkerLost, rows: IntArray, action: Action
    ) -> RowsAnswer:
        """Start a lost worker again, and step those of these rows that can be."""
        revived = self._revived(number, lost)
        failed = {failure.row: failure for _, failure in revived.failures}
        is_failed = np.isin(rows, list(failed))
        count = int(np.count_nonzero(is_failed))
        blank = _blank(self.layout, count)
        infos = [Info() for _ in range(count)]
        answer = RowsAnswer(
            observation=blank,
            first_observation=blank,
            reward=np.zeros(count, np.float64),
            terminated=np.zeros(count, np.bool_),
            truncated=np.zeros(count, np.bool_),
            infos=infos,
            failures=[
                (place, failed[row]._replace(verb="step"))
                for place, row in enumerate(rows[is_failed].tolist())
            ],
        )
        if is_failed.all():
            return answer
        (others,) = np.nonzero(~is_failed)
        again = self.step(rows[others], _part(action, others))
        return _merged([answer, again], [np.flatnonzero(is_failed), others])

    def _remember(self, rows: IntArray, action: Action, answer: RowsAnswer) -> None:
        """Keep what it takes to live the rows' episodes again."""
        restarted = dict(answer.starts)
        over = answer.terminated | answer.truncated
        parts = zip(*self.layout.action_arrays(action), strict=True)
        for place, (row, leaves) in enumerate(zip(rows.tolist(), parts, strict=True)):
            history = self._histories[row]
            if over[place]:
                seed = None if history is None else history.seed
                start = restarted.get(place)
                self._histories[row] = None if start is None else self._history(seed, start)
            elif history is not None:
                history.actions.append(leaves)
        assert self._shown is not None
        for key, values in answer.first_observation.items():
            self._shown[key][rows] = values

    def _every_worker(self) -> dict[int, tuple[()]]:
        """A call without arguments to every worker."""
        return dict.fromkeys(range(len(self._workers)), ())

    def _shares(self, values: Sequence[object]) -> dict[int, tuple[object]]:
        """A call of every worker with the values of its own rows."""
        return {n: ([values[r] for r in w.rows],) for n, w in enumerate(self._workers)}

    def _call(self, verb: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]) -> list[T]:
        """Call these workers and return their replies; raises errors only after the last reply."""
        replies = []
        for reply in self._replies(verb, arguments):
            if isinstance(reply, WorkerLost):
                raise reply
            replies.append(reply)
        return replies

    def _replies(
        self, verb: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]
    ) -> "list[T | WorkerLost]":
        """The replies of these workers; a `WorkerLost` stands for that of a lost one."""
        processes = [worker.process for worker in self._workers]
        failures = {
            number: _outcome(processes[number].request, verb, *given)
            for number, given in arguments.items()
        }
        replies = [
            failure or _outcome(self._workers[number].process.reply)
            for number, failure in failures.items()
        ]
        for reply in replies:
            if isinstance(reply, CoachError) and not isinstance(reply, WorkerLost):
                raise reply
        return replies


def _outcome(call: Callable[..., object], *arguments: object) -> Any:
    """Return the call's result, or the error it raises."""
    try:
        return call(*arguments)
    except CoachError as error:
        return error


def _blank(layout: Layout, count: int) -> Observation:
    return {key: np.zeros_like(values) for key, values in layout.buffers(count).items()}


def _by_key(parts: Sequence[Observation]) -> Observation:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _failures(
    parts: Sequence[RowsStart | RowsAnswer], places: Sequence[IntArray]
) -> list[tuple[int, RowFailure]]:
    """The failures of the workers' answers, each at its place in the whole."""
    return [
        (int(here[place]), failure)
        for part, here in zip(parts, places, strict=True)
        for place, failure in part.failures
    ]


def _part(action: Action, index: IntArray) -> Action:
    if isinstance(action, dict):
        return {key: values[index] for key, values in action.items()}
    return action[index]


def _merged(answers: list[RowsAnswer], places: list[IntArray]) -> RowsAnswer:
    """The workers' answers as one, each at its places."""
    given = np.concatenate(places)
    is_in_order = bool((given[1:] > given[:-1]).all())
    order = np.arange(len(given)) if is_in_order else np.argsort(given)

    def whole(parts: list[Array]) -> Array:
        joined = np.concatenate(parts)
        return joined if is_in_order else joined[order]

    infos = [info for answer in answers for info in answer.infos]
    keys = answers[0].observation
    observation = {key: whole([answer.observation[key] for answer in answers]) for key in keys}
    first = observation
    if any(answer.first_observation is not answer.observation for answer in answers):
        first = {key: whole([answer.first_observation[key] for answer in answers]) for key in keys}
    return RowsAnswer(
        observation=observation,
        first_observation=first,
        reward=whole([answer.reward for answer in answers]),
        terminated=whole([answer.terminated for answer in answers]),
        truncated=whole([answer.truncated for answer in answers]),
        infos=[infos[index] for index in order.tolist()],
        failures=_failures(answers, places),
        starts=[
            (int(here[place]), start)
            for answer, here in zip(answers, places, strict=True)
            for place, start in answer.starts
        ],
    )
