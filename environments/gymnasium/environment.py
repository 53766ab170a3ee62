"""N Gymnasium environments as one `Environment`."""

from collections.abc import Sequence

from coach_rl.core.errors import RunError
from coach_rl.core.records import Action, Array, Directive, EnvResponse, IntArray
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.environments.gymnasium.layout import batched_infos
from coach_rl.environments.gymnasium.rows import LocalRows, RowsAnswer
from coach_rl.environments.gymnasium.workers import WorkerRows
from coach_rl.environments.inbox import Inbox, require_rows, row_seeds


class GymnasiumEnvironment:
    """N single Gymnasium environments; an `Environment` and `Renderable`.

    No row resets itself: the true last observation of an episode is in `observation`, the first of
    the next in `first_observation`. The info is that of the step; only `reset` tells its own.
    After an error in a row everything open is dropped; `reset` starts anew.

    Args:
        rows: The environments, here or in worker processes; owned from now on.
        num_envs: N.
    """

    def __init__(self, rows: LocalRows | WorkerRows, *, num_envs: int) -> None:
        self._rows = rows
        self._num_envs = num_envs
        self._inbox = Inbox(rows.layout.spaces.action, num_envs=num_envs)
        self._closed = False

    @property
    def num_envs(self) -> int:
        """N."""
        return self._num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """Observation and action space of one row."""
        return self._rows.layout.spaces

    @property
    def replays_episodes(self) -> bool:
        """True: an arbitrary environment cannot be written down."""
        return True

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `Environment.reset`."""
        self._require_open()
        seeds = row_seeds(seed, self._num_envs)
        self._inbox.stop("the last reset failed; call reset first")
        observation, infos = self._rows.reset(seeds or [None] * self._num_envs)
        self._inbox.start()
        return EnvResponse.reset(observation, num_envs=self._num_envs, info=batched_infos(infos))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do; see `Environment.send`."""
        self._require_open()
        self._inbox.put(directive, rows)

    def recv(self) -> EnvResponse:
        """Step every row that was sent something; the answers come in the order sent."""
        rows, action = self._inbox.take()
        try:
            answer = self._rows.step(rows, action)
        except BaseException as error:
            self._inbox.stop_after(error)
            raise
        return response_of(rows, answer)

    def render(self, row: int = 0) -> Array:
        """A frame of a row, uint8 [height, width, 3]; wants `render_mode="rgb_array"` in kwargs."""
        self._require_open()
        return self._rows.render(row)

    def state_dict(self) -> State:
        """Return what replays every row's unfinished episode, and the open decisions.

        It is as long as the episodes are.
        """
        self._require_open()
        states = self._rows.snapshot() if self._inbox.is_started else []
        return {
            "inbox": self._inbox.state_dict(),
            "rows": {str(row): state for row, state in enumerate(states)},
        }

    def load_state_dict(self, state: State) -> None:
        """Replay every row's unfinished episode; costs its steps once more.

        Raises:
            CheckpointError: Another number of rows, or a row did not arrive where it was saved.
        """
        self._require_open()
        self._inbox.stop("no state was loaded into the environment yet; call reset first")
        if state["inbox"]["started"]:
            require_rows(len(state["rows"]), self._num_envs)
            self._rows.restore([state["rows"][str(row)] for row in range(self._num_envs)])
        self._inbox.load_state_dict(state["inbox"])

    def close(self) -> None:
        """Close every environment and end every worker; harmless when repeated."""
        if not self._closed:
            self._closed = True
            self._inbox.stop("the environment is closed; build a new one")
            self._rows.close()

    def _require_open(self) -> None:
        if self._closed:
            raise RunError("the environment is closed; build a new one")


def response_of(rows: IntArray, answer: RowsAnswer) -> EnvResponse:
    """The answer of these rows as a response."""
    return EnvResponse.step(
        rows,
        observation=answer.observation,
        first_observation=answer.first_observation,
        reward=answer.reward,
        terminated=answer.terminated,
        truncated=answer.truncated,
        info=batched_infos(answer.infos),
    )
