"""N Gymnasium environments as one `Environment`."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from coach_rl.core.errors import CheckpointError, EnvironmentFault, RunError, warn
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    Fault,
    IntArray,
    Observation,
)
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.environments.faults import (
    FaultLedger,
    FaultParameters,
    RowFailure,
    SettingsWatch,
    first_of_each,
    space_watches,
)
from coach_rl.environments.gymnasium.layout import batched_infos
from coach_rl.environments.gymnasium.rows import LocalRows, RowsAnswer
from coach_rl.environments.gymnasium.workers import WorkerRows
from coach_rl.environments.inbox import Inbox, require_rows, row_seeds


class GymnasiumEnvironment:
    """N single Gymnasium environments; an `Environment` and `Renderable`.

    No row resets itself: the true last observation of an episode is in `observation`, the first of
    the next in `first_observation`. The info is that of the step; only `reset` returns its own.
    A row that fails is restarted or stops the run, by the parameters; after an error all open
    decisions are dropped until the next `reset`.

    Args:
        rows: The environments, here or in worker processes; owned from now on.
        num_envs: N.
        level: Their name.
        faults: The response to failures.
        unsaved: Reason why rows can't be saved; None if they can.
    """

    def __init__(
        self,
        rows: LocalRows | WorkerRows,
        *,
        num_envs: int,
        level: str,
        faults: FaultParameters,
        unsaved: str | None = None,
    ) -> None:
        self._rows = rows
        self.unsaved = unsaved
        """See `UnsavedEnvironment`."""
        self._num_envs = num_envs
        self._all_in_order = np.arange(num_envs).tobytes()
        self._ledger = FaultLedger(faults, num_envs=num_envs)
        self._watches = space_watches(rows.layout.spaces, level=level)
        is_here = isinstance(rows, LocalRows)  # not in processes of their own
        self._settings: AbstractContextManager[None]
        self._settings_at_start: AbstractContextManager[None]
        self._settings = SettingsWatch(level) if is_here else nullcontext()
        self._settings_at_start = (
            SettingsWatch(level, with_device=True) if is_here else nullcontext()
        )
        self._acts_on: Observation = {}
        """[N, ...] each: the observations on which rows act next."""
        self._inbox = Inbox(rows.layout.spaces.action, num_envs=num_envs)
        self._closed = False

    @property
    def num_envs(self) -> int:
        return self._num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self._rows.layout.spaces

    @property
    def replays_episodes(self) -> bool:
        return self._rows.replays_episodes()

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        self._require_open()
        seeds = row_seeds(seed, self._num_envs)
        self._inbox.stop("the last reset failed; call reset first")
        self._ledger.reset(seeds)
        with self._settings_at_start:
            start = self._rows.reset(seeds or [None] * self._num_envs)
        faults = tuple(
            fault
            for row, failure in first_of_each(start.failures).items()
            for fault in self._restart(failure, start.observation, row, {})
        )
        for watch in self._watches:
            watch.check(np.arange(self._num_envs), start.observation)
        self._inbox.start()
        self._acts_on = {key: values.copy() for key, values in start.observation.items()}
        return EnvResponse.reset(
            start.observation,
            num_envs=self._num_envs,
            info=batched_infos(start.infos),
            faults=faults,
        )

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        self._inbox.put(directive, rows)

    def recv(self) -> EnvResponse:
        rows, action = self._inbox.take()
        try:
            with self._settings:
                answer = self._rows.step(rows, action)
            self._ledger.steps += len(rows)
            lost: BoolArray | None = None
            faults: tuple[Fault, ...] = ()
            if answer.failures:
                answer, lost, faults = self._with_restarts(rows, action, answer)
            for watch in self._watches:
                watch.check(rows, answer.observation)
                if answer.first_observation is not answer.observation:
                    watch.check(rows, answer.first_observation)
        except BaseException as error:
            self._inbox.stop_after(error)
            raise
        if rows.tobytes() == self._all_in_order:
            first = answer.first_observation.items()
            self._acts_on = {key: values.copy() for key, values in first}
        else:
            for key, values in answer.first_observation.items():
                self._acts_on[key][rows] = values
        return response_of(rows, answer, lost=lost, faults=faults)

    def _seen_by(self, row: int) -> State:
        """A copy of a row's current observation, in the order of the flat keys."""
        parts = enumerate(self._acts_on.values())
        return {str(index): np.array(values[row]) for index, values in parts}

    def _with_restarts(
        self, rows: IntArray, action: Action, answer: RowsAnswer
    ) -> tuple[RowsAnswer, BoolArray, tuple[Fault, ...]]:
        """The answer after restarts of failed rows, the rows whose step is void, and the faults."""
        failures = first_of_each(answer.failures)
        lost = np.zeros(len(rows), np.bool_)
        for place, failure in failures.items():
            lost[place] = failure.verb == "step"  # a reset fails after a valid step
        self._ledger.steps -= int(np.count_nonzero(lost))
        infos = list(answer.infos)
        first = {key: values.copy() for key, values in answer.first_observation.items()}
        actions = self._rows.layout.action_arrays(action)
        faults: list[Fault] = []
        for place, failure in failures.items():
            shown = {key: values[rows[place]] for key, values in self._acts_on.items()}
            context = {f"acted_on/{key}": value.copy() for key, value in shown.items()}
            context |= {f"action/{n}": np.array(part[place]) for n, part in enumerate(actions)}
            faults += self._restart(failure, first, place, context)
            if lost[place]:
                infos[place] = {}
                for key, value in shown.items():
                    answer.observation[key][place] = value
        repaired = answer._replace(
            first_observation=first,
            reward=np.where(lost, 0.0, answer.reward),
            terminated=answer.terminated & ~lost,
            truncated=answer.truncated | lost,
            infos=infos,
        )
        return repaired, lost, tuple(faults)

    def _restart(
        self, failure: RowFailure, first: Observation, place: int, context: Mapping[str, Array]
    ) -> Iterator[Fault]:
        """Faults of a row that is restarted until it works.

        Args:
            failure: Its first failure.
            first: Receives its first observation, [R, ...] each.
            place: The row's position there.
            context: Arrays for the evidence.
        """
        failures = [failure]
        while failures:
            yield self._ledger.record(failures[0], **context)
            with self._settings_at_start:
                start = self._rows.rebuild(failure.row, self._ledger.fresh_seed(failure.row))
            failures = list(first_of_each(start.failures).values())
        for key, values in start.observation.items():
            first[key][place] = values[0]

    def render(self, row: int = 0) -> Array:
        """A frame of a row, uint8 [height, width, 3]; needs `render_mode="rgb_array"` in kwargs."""
        self._require_open()
        with self._settings:
            return self._rows.render(row)

    def state_dict(self) -> State:
        """Each row's own state or the actions that replay its episode, and the open decisions.

        Raises:
            CheckpointError: The rows can't be saved.
        """
        self._require_open()
        if self.unsaved is not None:
            raise CheckpointError(self.unsaved)
        states = self._rows.snapshot() if self._inbox.is_started else []
        return {
            "inbox": self._inbox.state_dict(),
            "rows": {
                str(row): {**state, "observation": self._seen_by(row)}
                for row, state in enumerate(states)
            },
            "faults": self._ledger.state_dict(),
            "acts_on": {key: values.copy() for key, values in self._acts_on.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Load every row's own state, or replay its unfinished episode, step by step.

        Raises:
            CheckpointError: Another number of rows, or a row did not reach its saved state.
        """
        self._require_open()
        self._inbox.stop("no state was loaded into the environment yet; call reset first")
        if state["inbox"]["started"]:
            require_rows(len(state["rows"]), self._num_envs)
            with self._settings_at_start:
                self._rows.restore([state["rows"][str(row)] for row in range(self._num_envs)])
        self._inbox.load_state_dict(state["inbox"])
        self._ledger.load_state_dict(state["faults"])
        self._acts_on = {key: np.array(values) for key, values in state["acts_on"].items()}

    def close(self) -> None:
        """Close every environment and end every worker; may be repeated.

        Warns:
            CoachWarning: An environment failed to close, without consequences.
        """
        if not self._closed:
            self._closed = True
            self._inbox.stop("the environment is closed; build a new one")
            try:
                with self._settings_at_start:
                    for failure in self._rows.close():
                        warn(failure)
            except EnvironmentFault as error:  # about settings, which are put back
                warn(str(error))

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the environment is closed; build a new one")


def response_of(
    rows: IntArray,
    answer: RowsAnswer,
    *,
    lost: BoolArray | None = None,
    faults: tuple[Fault, ...] = (),
) -> EnvResponse:
    """The answer of these rows as a response; see `EnvResponse.step`."""
    return EnvResponse.step(
        rows,
        observation=answer.observation,
        first_observation=answer.first_observation,
        reward=answer.reward,
        terminated=answer.terminated,
        truncated=answer.truncated,
        info=batched_infos(answer.infos),
        lost=lost,
        faults=faults,
    )
