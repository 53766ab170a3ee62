"""Visits within an episode, counted row by row."""

from collections.abc import Callable, Mapping
from hashlib import blake2b

import numpy as np

from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import Array, BoolArray, IntArray, Observation, Outcome
from coach_rl.core.signals import Signals
from coach_rl.core.state import State

KeyFunction = Callable[[Observation], Array]
"""Function from unfiltered observations [R, ...] each to what is counted, [R, ...]. It stands at
the top level of a file."""
INFO = "infos/"
"""Prefix of the names of infos."""
DIGEST = 16
"""Bytes that stand for what was visited."""


@parameter_class
class VisitedParameters:
    """A description of what counts as visited.

    What the agent doesn't observe, such as the full state or a position, is a *given*: a score with
    it is not comparable with scores without, and results name it.
    """

    key: str | KeyFunction | None = None
    """Name of an observation entry or, as `infos/<name>`, of an info; or a function of
    observations. None: everything observed but the level's goal or option."""
    elements: NonEmpty[tuple[NonNegative[int], ...]] | None = None
    """Elements of the flattened entry that count, such as the position alone; None: all. They need
    a `key`."""
    cell: Positive[float] | NonEmpty[tuple[Positive[float], ...]] | None = None
    """Side of a grid's cells, one for all elements or, with a `key`, one for each: numbers are
    divided by it and rounded down. None: they count as they are."""


class Visits:
    """Numbers of visits in the current episode of each row.

    An episode's first observation counts where the key is read from observations; infos of it are
    not known.

    Args:
        params: What is counted.
        context: That of the agent.
        name: Of the bonus, for messages.
    """

    def __init__(self, params: VisitedParameters, context: AgentContext, name: str) -> None:
        self._params = params
        self._owner = owner_of(name, context)
        self._signals: Signals = context.signals
        self._counts: list[dict[bytes, int]] = [{} for _ in range(context.num_envs)]
        self._begun = np.ones(context.num_envs, np.bool_)
        space = context.spaces.observation
        self._keys = tuple(key for key in space.spaces if key not in DIRECTIVE_KEYS)
        self._is_checked = False
        if params.key is None and (params.elements is not None or isinstance(params.cell, tuple)):
            raise ConfigurationError(
                f"{self._owner} counts elements {params.elements} in cells of {params.cell}, of no "
                f"one entry; set `key` to one of {', '.join(self._keys)}"
            )
        if isinstance(params.key, str) and not params.key.startswith(INFO):
            if params.key not in space.spaces:
                raise SpaceError(
                    f"{self._owner} counts the observation '{params.key}', and there are "
                    f"{', '.join(space.spaces)}; set `key` to one of these, or to 'infos/<name>'"
                )
            self._keys = (params.key,)
            self._check_elements("an observation", space.spaces[params.key].shape)

    def begin(self, rows: IntArray) -> None:
        """Forget the visits of rows [R], whose episodes begin."""
        visited = [len(self._counts[row]) for row in rows.tolist() if self._counts[row]]
        if visited:
            self._signals.note("visited", np.array(visited, np.float64))
        for row in rows.tolist():
            self._counts[row] = {}
        self._begun[rows] = True

    def count(self, before: Observation, outcome: Outcome) -> IntArray:
        """Numbers of visits [R] of what decisions led to, this one included.

        Args:
            before: Observations that they were made on, [R, ...] each.
            outcome: What they led to.
        """
        rows = outcome.rows
        begun = self._begun[rows]
        of_info = isinstance(self._params.key, str) and self._params.key.startswith(INFO)
        if begun.any() and not of_info:
            self._visit(rows[begun], self._visited({k: v[begun] for k, v in before.items()}))
        self._begun[rows] = False
        shown = {INFO + k: v for k, v in outcome.info.items()} if of_info else outcome.observation
        return self._visit(rows, self._visited(shown))

    def state_dict(self) -> State:
        """Digests of what was visited, uint8 [V, 16], with their rows and counts [V]."""
        rows = [row for row, counts in enumerate(self._counts) for _ in counts]
        digests = b"".join(digest for counts in self._counts for digest in counts)
        numbers = [count for counts in self._counts for count in counts.values()]
        return {
            "rows": np.array(rows, np.int64),
            "digests": np.frombuffer(digests, np.uint8).reshape(-1, DIGEST).copy(),
            "counts": np.array(numbers, np.int64),
            "begun": self._begun.copy(),
        }

    def load_state_dict(self, state: State) -> None:
        """Load what `state_dict` returned for as many rows."""
        self._counts = [{} for _ in self._counts]
        columns = (state["rows"].tolist(), state["digests"], state["counts"].tolist())
        for row, digest, count in zip(*columns, strict=True):
            self._counts[row][digest.tobytes()] = count
        self._begun[...] = state["begun"]

    def _visit(self, rows: IntArray, visited: Array) -> IntArray:
        """Count a visit of rows [R] to what they visited, uint8 [R, B]; their numbers now, [R]."""
        numbers = np.zeros(len(rows), np.int64)
        for place, (row, own) in enumerate(zip(rows.tolist(), visited, strict=True)):
            digest = blake2b(own.tobytes(), digest_size=DIGEST).digest()
            counts = self._counts[row]
            counts[digest] = numbers[place] = counts.get(digest, 0) + 1
        return numbers

    def _visited(self, shown: Mapping[str, Array]) -> Array:
        """The bytes of what is counted, uint8 [R, B]."""
        key = self._params.key
        if callable(key):
            parts = [np.asarray(key(dict(shown)))]
            self._check_elements("a function's result", parts[0].shape[1:])
        elif isinstance(key, str):
            parts = [self._entry(shown, key)]
            self._check_elements("an info", parts[0].shape[1:])
        else:
            parts = [shown[each] for each in self._keys]
        return np.concatenate([self._bytes(each) for each in parts], axis=1)

    def _entry(self, shown: Mapping[str, Array], key: str) -> Array:
        if key not in shown:
            there = [each for each in shown if not each.startswith(f"{INFO}_")]
            raise ConfigurationError(
                f"{self._owner} counts '{key}', which the environment does not report; there are "
                f"{', '.join(there) or 'none'}; set `key` to one of these"
            )
        return shown[key]

    def _bytes(self, values: Array) -> Array:
        """Values [R, ...] as bytes [R, B]; equal numbers have equal ones."""
        flat = values.reshape(len(values), -1)
        if self._params.elements is not None:
            flat = flat[:, self._params.elements]
        if self._params.cell is not None:
            flat = np.floor(flat / np.asarray(self._params.cell)).astype(np.int64)
        elif flat.dtype.kind == "f":
            flat = flat + flat.dtype.type(0)  # -0 and 0 are equal
        return np.ascontiguousarray(flat).view(np.uint8).reshape(len(values), -1)

    def _check_elements(self, what: str, shape: tuple[int, ...] | None) -> None:
        """Raise `SpaceError` where elements or cells are not those of what is counted.

        Args:
            what: What it is, for the message.
            shape: Its shape; that of an info or a function's result counts at its first use.
        """
        if self._is_checked:
            return
        size = int(np.prod(shape or ()))
        elements = self._params.elements or range(size)
        cell = self._params.cell
        if max(elements, default=0) >= size or (
            isinstance(cell, tuple) and len(cell) != len(elements)
        ):
            raise SpaceError(
                f"{self._owner} counts elements {self._params.elements} in cells of {cell}, of "
                f"{what} of {size}; set `elements` to some of these, and a cell for each"
            )
        self._is_checked = True


def owner_of(name: str, context: AgentContext) -> str:
    """A bonus of that name at an agent's place, for messages."""
    level = context.place.level
    return f"the bonus {name}" if level is None else f"the bonus {name} of level '{level.name}'"


def first_visits(numbers: IntArray) -> BoolArray:
    """True for numbers of visits [R] that are those of first ones in an episode, [R]."""
    first: BoolArray = numbers == 1
    return first
