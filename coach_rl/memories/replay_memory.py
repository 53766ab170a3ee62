"""Off-policy memory: the newest transitions of every row, sampled any number of times.

Built by `replay_parameters` from a `RingStore`, which keeps, and a `SamplerChain`, which draws.
"""

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.records import Array, IntArray, Observation, Transition
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State
from coach_rl.memories.batches import TransitionBatch, as_batch
from coach_rl.memories.columns import FOLLOWS, MASK, REWARDS, ROWS, extra, shown_as
from coach_rl.memories.hindsight import HindsightGoals
from coach_rl.memories.minari_data import read_minari
from coach_rl.memories.prioritised import PrioritisedPositions
from coach_rl.memories.replay_layout import ReplayLayout
from coach_rl.memories.ring_store import LEDGER, RingStore
from coach_rl.memories.row_history import RowHistory
from coach_rl.memories.sampling_chain import SamplerChain
from coach_rl.memories.tables import Field, kept_dtype


class ReplayMemory:
    """Keeps the newest transitions of each row; hands out batches drawn from all of them.

    Args:
        layout: Its columns.
        store: Keeps them.
        sampler: Draws batches from the store.
        rng: The stream that the sampler draws from.
        priorities: The sampler's priorities; None where all transitions are drawn alike.
        relabel: The sampler's hindsight goals; None where goals stay.
    """

    def __init__(
        self,
        layout: ReplayLayout,
        *,
        store: RingStore,
        sampler: SamplerChain,
        rng: np.random.Generator,
        priorities: PrioritisedPositions | None = None,
        relabel: HindsightGoals | None = None,
    ) -> None:
        self.layout, self.store, self.sampler = layout, store, sampler
        self._rng, self.priorities, self._relabel = rng, priorities, relabel
        self._awaits_first = True

    def __len__(self) -> int:
        return len(self.store)

    @property
    def capacity(self) -> int:
        """Transitions it has room for; less than asked for where the rows can't share them out."""
        return self.layout.num_rows * self.layout.row_capacity

    @property
    def is_prioritised(self) -> bool:
        """True if `note_errors` changes anything."""
        return self.priorities is not None

    @property
    def history(self) -> RowHistory:
        """The kept transitions, by rows and their steps."""
        return RowHistory(self.store)

    def rows_of(self, positions: Tensor) -> IntArray:
        """The rows of sampled transitions, [B]."""
        return self.store.rows_of(positions.cpu().numpy())

    def add(self, transition: Transition) -> None:
        """Keep R transitions of different rows; the oldest of full rows give way."""
        if not self.layout.keeps:
            raise RunError(
                "a replay memory with storage='none' keeps nothing; use cpu, pinned or device to "
                "learn from it"
            )
        values = self.layout.columns(transition)
        if self._awaits_first:
            self._take_in_first(values)
        positions = self.store.add(transition.rows, values)
        if self.priorities is not None:
            self.priorities.added(positions, int(transition.duration.sum()))

    def truncate(self, rows: IntArray) -> None:
        """Let the open episodes of these rows end, truncated, with their newest transitions."""
        self.store.truncate(rows)

    def sample(self, size: int) -> TransitionBatch:
        """A batch of B = `size` transitions, drawn with replacement."""
        return as_batch(self.sampler(size))

    def as_shown(self, observation: Observation) -> Observation:
        """Observations [R, ...] each as batches will show them; see `Memory.as_shown`."""
        if self._relabel is None or not self._relabel.fraction:
            return observation
        return {**observation, GOAL_KEY: self._relabel.mixed_in(observation[GOAL_KEY])}

    def note_errors(self, positions: Tensor, errors: Tensor) -> None:
        """Tell how wrong the learner was, [B] each; on a CUDA device this waits for it."""
        if self.priorities is not None:
            self.priorities.note_errors(
                positions.detach().cpu().numpy(), errors.detach().cpu().numpy()
            )

    def metrics(self) -> dict[str, float]:
        """Return the fill level and the metrics of the sampler's units."""
        return {"memory/transitions": float(len(self)), **self.sampler.metrics()}

    def clear(self) -> None:
        """Forget everything; the columns stay allocated."""
        self.store.clear()
        if self.priorities is not None:
            self.priorities.clear()

    def prefill(self, source: str) -> None:
        """Add the episodes of a Minari data set, each to the row that has fewest transitions.

        Args:
            source: The data set's id or path.

        Raises:
            ConfigurationError: The data set has other spaces, or doesn't fit in.
        """
        layout, capacity = self.layout, self.store.row_capacity
        rows = np.minimum(self.store.counts, capacity)
        for episode in read_minari(
            source, observation_space=layout.observation_space, action_space=layout.action_space
        ):
            row, time = int(rows.argmin()), len(episode[REWARDS])
            rows[row] += time
            if rows[row] > capacity:
                raise ConfigurationError(
                    f"data set '{source}' does not fit into the memory: each of its {len(rows)} "
                    f"rows holds {capacity:,} transitions and whole episodes go to one row; raise "
                    f"`capacity` ({self.capacity:,})"
                )
            values = episode | layout.hindsight_ledger(episode)
            if layout.keeps_follows:
                values[FOLLOWS] = np.ones(time, np.bool_)
            positions = self.store.extend(row, values)
            if self.priorities is not None:
                self.priorities.added(positions, 0)

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """Everything kept by flat path, [N, T, ...] each, oldest first, zeros behind a row's end.

        Args:
            agent: Under whose name actions and extras are shown.

        Returns:
            The paths of `memories.columns.shown_as`, and `/mask` [N, T].
        """
        sizes = self.store.sizes
        mask = np.arange(int(sizes.max(initial=0))) < sizes[:, None]
        rows, time = np.nonzero(mask)
        positions = self.store.positions_of(rows, (self.store.counts - sizes)[rows] + time)
        paths = [*self.store.fields, *LEDGER]
        columns = {path: self.store.read(path, positions) for path in paths}
        shown: dict[str, Array] = {}
        for path, values in {**columns, ROWS: rows}.items():
            padded = np.zeros((*mask.shape, *values.shape[1:]), values.dtype)
            padded[mask] = values
            shown[shown_as(path, agent)] = padded
        return {**shown, MASK: mask}

    def state_dict(self) -> State:
        """Return the kept transitions, the sampler and its random stream."""
        return {
            "store": self.store.state_dict(),
            "sampler": self.sampler.state_dict(),
            "generator": generator_state(self._rng),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on bit for bit where the saved memory stood; with no storage, go without."""
        if not self.layout.keeps:
            return
        self.store.load_state_dict(state["store"])
        self.sampler.load_state_dict(state["sampler"])
        load_generator_state(self._rng, state["generator"])
        self._awaits_first = not set(self.layout.gathered) <= set(self.store.fields)

    def _take_in_first(self, values: Mapping[str, Array]) -> None:
        """Make the extras' columns, and check the first transitions against the spaces."""
        for path in map(extra, self.layout.extras):
            if path not in self.store.fields:
                kept = values[path]
                field = Field(kept.shape[1:], kept_dtype(kept.dtype))
                self.store.table.allocate(path, field)
        for path, field in self.store.fields.items():
            shape = values[path].shape[1:] if path in values else None
            if shape != field.shape:
                raise RunError(
                    f"the first transition has {shape} under '{path}', the memory was built "
                    f"for {field.shape}; build it for the agent's filtered spaces"
                )
        self._awaits_first = False
