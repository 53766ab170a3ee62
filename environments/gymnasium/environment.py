"""N Gymnasium environments as one `Environment`."""

from collections.abc import Sequence
from typing import Protocol

from coach_rl.core.errors import CheckpointError, RunError
from coach_rl.core.records import Action, Array, Directive, EnvResponse, IntArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.environments.bookkeeping import Inbox, reset_response, row_seeds, step_response
from coach_rl.environments.gymnasium.block import BlockAnswer, RowBlock
from coach_rl.environments.gymnasium.infos import Info, batched_infos
from coach_rl.environments.gymnasium.layout import Layout


class Backend(Protocol):
    """Where the rows live: in this process, or in workers."""

    @property
    def layout(self) -> Layout:
        """How the environments' values lie in flat arrays."""
        ...

    def reset(self, seeds: Sequence[int | None]) -> tuple[Observation, list[Info]]:
        """Start every row anew; its observations [N, ...] and infos."""
        ...

    def start(self, rows: IntArray, action: Action) -> None:
        """Begin to step some rows; may be called for other rows before `finish`."""
        ...

    def finish(self, rows: IntArray, action: Action) -> BlockAnswer:
        """The answer of all rows that were started, given once more in the same order."""
        ...

    def snapshot(self) -> list[State]:
        """Each row's state."""
        ...

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        ...

    def render(self, row: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        ...

    def close(self) -> None:
        """Close every environment."""
        ...


class LocalRows:
    """All rows in this process; a `Backend`."""

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        self.layout = block.layout
        self.reset = block.reset
        self.snapshot = block.snapshot
        self.restore = block.restore
        self.render = block.render
        self.close = block.close

    def start(self, rows: IntArray, action: Action) -> None:
        """Nothing happens before `finish`."""

    def finish(self, rows: IntArray, action: Action) -> BlockAnswer:
        """Step the rows."""
        return self._block.step(rows, action)


class GymnasiumEnvironment:
    """N single Gymnasium environments; an `Environment` and `Renderable`.

    No row resets itself: the true last observation of an episode is in `observation`, the first of
    the next in `first_observation`. The info is that of the step; only `reset` tells its own.
    After an error in a row everything open is dropped; `reset` starts anew.

    Args:
        backend: Where the rows live; owned from now on.
        num_envs: N.
    """

    def __init__(self, backend: Backend, *, num_envs: int) -> None:
        self._backend = backend
        self._num_envs = num_envs
        self._inbox = Inbox(backend.layout.spaces.action, num_envs=num_envs)
        self._started = False
        self._closed = False

    @property
    def num_envs(self) -> int:
        """N."""
        return self._num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What one row shows and takes."""
        return self._backend.layout.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `Environment.reset`."""
        self._require_open()
        seeds = row_seeds(seed, self._num_envs)
        self._inbox.stop("the last reset failed; call reset first")
        self._started = False
        observation, infos = self._backend.reset(seeds)
        self._inbox.start()
        self._started = True
        return reset_response(observation, num_envs=self._num_envs, info=batched_infos(infos))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do; workers begin at once, see `Environment.send`."""
        self._require_open()
        index, action = self._inbox.put(directive, rows)
        try:
            self._backend.start(index, action)
        except RunError as error:
            self._fail(error)
            raise

    def recv(self) -> EnvResponse:
        """The answer of every row that was sent something, in the order sent."""
        rows, action = self._inbox.take()
        try:
            answer = self._backend.finish(rows, action)
        except RunError as error:
            self._fail(error)
            raise
        return step_response(
            rows,
            observation=answer.observation,
            first_observation=answer.first_observation,
            reward=answer.reward,
            terminated=answer.terminated,
            truncated=answer.truncated,
            info=batched_infos(answer.infos),
        )

    def render(self, row: int = 0) -> Array:
        """A frame of a row, uint8 [height, width, 3]; wants `render_mode="rgb_array"` in kwargs."""
        self._require_open()
        return self._backend.render(row)

    def state_dict(self) -> State:
        """How to live every row's unfinished episode again; as long as the episodes are."""
        self._require_open()
        self._inbox.require_none_open()
        if not self._started:
            return {"started": False, "rows": {}}
        states = self._backend.snapshot()
        return {"started": True, "rows": {str(row): state for row, state in enumerate(states)}}

    def load_state_dict(self, state: State) -> None:
        """Replay every row's unfinished episode; costs its steps once more.

        Raises:
            CheckpointError: Another number of rows, or a row did not arrive where it was saved.
        """
        self._require_open()
        self._inbox.stop("no state was loaded into the environment yet; call reset first")
        self._started = False
        if not state["started"]:
            return
        if len(state["rows"]) != self._num_envs:
            raise CheckpointError(
                f"the saved environment has {len(state['rows'])} rows, "
                f"this one {self._num_envs}; build it with as many"
            )
        self._backend.restore([state["rows"][str(row)] for row in range(self._num_envs)])
        self._inbox.start()
        self._started = True

    def close(self) -> None:
        """Close every environment and end every worker; harmless when repeated."""
        if not self._closed:
            self._closed = True
            self._inbox.stop("the environment is closed; build a new one")
            self._backend.close()

    def _fail(self, error: RunError) -> None:
        self._started = False
        self._inbox.stop(f"the environment failed ({error}); call reset first")

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the environment is closed; build a new one")
