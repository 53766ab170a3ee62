"""Inspectors of the data at a point of a run: checks, statistics, and the reaction.

inspector = Inspector(InspectParameters(), point, level="main", note=findings.append)
inspector.inspect(lambda: {"reward": rewards, "observation/position": positions})
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from coach_rl.core.errors import RunError, UnknownNameError, warn
from coach_rl.core.records import Array, BoolArray
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import inside
from coach_rl.extensions.looking.data_points import Columns, DataPoint

Check = Literal["nan", "shape", "range", "stats", "staleness"]
Reaction = Literal["warn", "dump", "stop"]
MOST_DUMPS = 10
"""Times that an inspection keeps what it has found something in, for files."""


class Checks(Protocol):
    """The checks of the data at a point, their interval, and the reaction to what they find."""

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks."""
        ...

    @property
    def within(self) -> tuple[float, float] | None:
        """Bounds of the check `range`; None: those of the spaces."""
        ...

    @property
    def oldest(self) -> int | None:
        """Greatest age allowed by the check `staleness`; None: any."""
        ...

    @property
    def every(self) -> int:
        """Interval of checks, in calls."""
        ...

    @property
    def reaction(self) -> Reaction:
        """The reaction to what they find."""
        ...


class InspectionError(RunError):
    """An inspection that was to stop the run has found something."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of an inspection."""

    level: str
    """The level that the point belongs to; empty for the simulators."""
    agent: str
    """The agent; empty for the simulators."""
    scalars: Mapping[str, float]
    """Numbers by `inspect/<point>/<column>/<quantity>`."""
    text: str = ""
    """Account of what is wrong, in one line; empty if nothing is."""
    name: str = ""
    """Name for a file of `columns`, different for every inspection of a run."""
    columns: Columns = field(default_factory=dict)
    """Inspected columns, if they are to be written to a file."""


class Inspector(Saved):
    """Inspects the data at one point.

    Args:
        params: What to check, how often, and the reaction.
        point: The point.
        level: The level it belongs to; empty for the simulators.
        column: Name of the only column to inspect, or the beginning of several; empty for all.
        note: Takes what is found.
    """

    SAVED = (
        SavedAttribute("_calls", key="looks"),
        "_dumps",
        SavedAttribute("_forms", varies=True),
    )

    def __init__(
        self,
        params: Checks,
        point: DataPoint,
        *,
        level: str,
        column: str = "",
        note: Callable[[Finding], None],
    ) -> None:
        self._params = params
        self._point = point
        self._level = level
        self._column = column
        self._note = note
        self._calls = self._dumps = 0
        self._forms: dict[str, str] = {}
        self._warned: set[str] = set()

    @property
    def name(self) -> str:
        """Its point and parameters; no two inspectors of a run have the same."""
        return f"{self._level}.{self._point.agent}.{self._point.name}: {self._params}"

    def inspect(self, shown: Callable[[], Columns]) -> None:
        """Inspect the data, if an inspection is due.

        Args:
            shown: Returns the columns.

        Raises:
            InspectionError: Something is wrong, and the run is to stop.
            UnknownNameError: The point has no such column.
        """
        number = self._calls
        self._calls = self._calls + 1
        if number % self._params.every:
            return
        columns = self._chosen(shown())
        scalars: dict[str, float] = {}
        wrong: dict[str, str] = {}  # accounts, by the name of the number
        for name, column in columns.items():
            for quantity, value, account in self._checked(name, column):
                path = "/".join(part for part in (self._point.name, name, quantity) if part)
                scalars[f"inspect/{path}"] = value
                if account:
                    wrong[path] = f"{self._subject(name)} {account}"
        if scalars:
            self._note(self._finding(number, scalars, wrong, columns))

    def _chosen(self, columns: Columns) -> dict[str, Array]:
        """The columns to inspect, with one axis at least."""
        wanted = {
            name: np.atleast_1d(values)
            for name, values in columns.items()
            if not self._column or f"{name}/".startswith(f"{self._column}/")
        }
        if columns and not wanted:
            where = f"of '{self._point.name}'"
            raise UnknownNameError("inspected column", self._column, columns, where=where)
        return wanted

    def _checked(self, name: str, values: Array) -> Iterator[tuple[str, float, str]]:
        """Findings of the checks: a quantity, its value, and an account of what is wrong."""
        params = self._params
        count = len(values)
        for check in params.checks:
            match check:
                case "nan" if values.dtype.kind == "f":
                    if bad := _rows(~np.isfinite(values)):
                        yield "not_finite", bad, f"is not finite in {bad:,} of {count:,} rows"
                case "shape":
                    form = f"{values.dtype} {values.shape[1:]}"
                    known = self._forms.setdefault(name, form)
                    if form != known:
                        self._forms[name] = form
                        yield "changed", 1.0, f"was {known} before and is {form} now"
                case "range":
                    bounds, allowed = self._allowed(name, values)
                    if bad := _rows(~allowed):
                        yield "outside", bad, f"is outside {bounds} in {bad:,} of {count:,} rows"
                case "stats" | "staleness":
                    yield from self._measured(name, values, check == "staleness")

    def _measured(
        self, name: str, values: Array, only_ages: bool
    ) -> Iterator[tuple[str, float, str]]:
        if not values.size or (only_ages and name not in self._point.ages):
            return
        numbers = values.astype(np.float64)
        with np.errstate(all="ignore"):  # NaN and infinity are expected
            yield "mean", float(numbers.mean()), ""
            yield "std", float(numbers.std()), ""
        yield "min", float(numbers.min()), ""
        yield "max", float(numbers.max()), ""
        oldest = self._params.oldest
        if only_ages and oldest is not None and (bad := _rows(numbers > oldest)):
            account = f"is above {oldest:,} in {bad:,} of {len(values):,} rows"
            yield "too_old", bad, account

    def _allowed(self, name: str, values: Array) -> tuple[str, BoolArray]:
        """The bounds in words, and which values keep to them; all do where there are none."""
        if self._params.within is not None:
            low, high = self._params.within
            return f"[{low:g}, {high:g}]", (values >= low) & (values <= high)
        if (space := self._point.spaces.get(name)) is not None:
            return f"its space {space}", inside(space, values)
        return "", np.ones(values.shape, np.bool_)

    def _finding(
        self, number: int, scalars: dict[str, float], wrong: dict[str, str], columns: Columns
    ) -> Finding:
        """The finding, after the reaction to what is wrong."""
        text = "; ".join(wrong.values())
        is_kept = False
        if wrong and self._params.reaction == "stop":
            raise InspectionError(f"the inspection of {text}", evidence=self._kept(columns))
        if wrong:
            is_kept = self._params.reaction == "dump" and self._dumps < MOST_DUMPS
            self._dumps += is_kept
            if not self._warned >= wrong.keys():
                self._warned |= wrong.keys()
                warn(f"the inspection of {text}; the run continues, and its log has what comes")
        owner = f"{self._level}.{self._point.name}".lstrip(".").replace("/", ".")
        return Finding(
            level=self._level,
            agent=self._point.agent,
            scalars=scalars,
            text=text,
            name=f"{owner}_{number}",
            columns=self._kept(columns) if is_kept else {},
        )

    def _kept(self, columns: Columns) -> dict[str, Array]:
        """Copies of the columns; a column without a name has the point's."""
        return {name or self._point.name: values.copy() for name, values in columns.items()}

    def _subject(self, column: str) -> str:
        """A column in words: `'batch' of agent 'ddpg' of level 'low': 'reward'`."""
        agent = f" of agent '{self._point.agent}'" if self._point.agent else ""
        level = f" of level '{self._level}'" if self._level else ""
        return f"'{self._point.name}'{agent}{level}: '{column or self._point.name}'"


def _rows(wrong: BoolArray) -> int:
    """The number of rows with anything wrong, of [rows, ...]."""
    return int(wrong.reshape(len(wrong), -1).any(axis=1).sum())
