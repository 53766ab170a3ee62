"""Statistics of signals since the last report."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from coach_rl.core.errors import require
from coach_rl.core.records import FloatArray
from coach_rl.core.state import State

CHUNK = 4096
"""Values that are kept as they came; then they become part of the statistics."""


class SignalWindow:
    """Mean, standard deviation, minimum, maximum and count of one signal.

    Values are kept until there are `CHUNK`, and reduced at once: that is much faster than one by
    one, and depends on the values alone, so that a restored window continues bit for bit.
    """

    def __init__(self) -> None:
        self._pending: list[FloatArray] = []
        self._size = 0
        self._count, self._mean, self._squares = 0, 0.0, 0.0
        self._low, self._high = np.inf, -np.inf

    def add(self, values: FloatArray) -> None:
        """Take in values, [n]; they are not copied."""
        self._pending.append(values)
        self._size += len(values)
        if self._size >= CHUNK:
            self._reduce()

    def statistics(self) -> dict[str, float]:
        """The figures by their names; empty where nothing came. NaN where a value was NaN."""
        self._reduce()
        if not self._count:
            return {}
        return {
            "mean": self._mean,
            "std": float(np.sqrt(self._squares / self._count)),
            "min": self._low,
            "max": self._high,
            "count": float(self._count),
        }

    def state_dict(self) -> State:
        """Everything."""
        return {
            "pending": np.concatenate([np.empty(0), *self._pending]),
            "reduced": np.array(
                [self._count, self._mean, self._squares, self._low, self._high], np.float64
            ),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        pending = np.array(state["pending"], np.float64)
        self._pending, self._size = [pending], len(pending)
        count, self._mean, self._squares, self._low, self._high = state["reduced"].tolist()
        self._count = int(count)

    def _reduce(self) -> None:
        """Merge the values kept into the statistics (Chan et al. 1983)."""
        if not self._size:
            return
        values = np.concatenate(self._pending)
        self._pending, self._size = [], 0
        with np.errstate(invalid="ignore"):  # infinite values give NaN, which is what they are
            mean, count = float(values.mean()), self._count + len(values)
            gap = mean - self._mean
            between = gap * gap * self._count * len(values) / count
            self._squares += float(np.square(values - mean).sum()) + between
            self._mean += gap * len(values) / count
        self._count = count
        self._low = float(np.minimum(self._low, values.min()))
        self._high = float(np.maximum(self._high, values.max()))


class SignalWindows:
    """The window of every signal, by name."""

    def __init__(self) -> None:
        self._windows: dict[str, SignalWindow] = {}

    def note(self, name: str, values: ArrayLike) -> None:
        """Take in values of a signal, of any shape.

        Raises:
            ParameterError: They are no numbers.
        """
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        require(
            array.dtype.kind in "biuf",
            f"signal '{name}' takes numbers, got {values!r:.80}; note a number, or an array or "
            "tensor of numbers",
        )
        numbers = array.astype(np.float64).ravel()
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = SignalWindow()
        window.add(numbers)

    def drain(self, room: str) -> dict[str, float]:
        """Return `<room>/<signal>/<statistic>` of all signals since the last call, and forget them.

        Args:
            room: First part of the names, e.g. `signals`.
        """
        drained, self._windows = self._windows, {}
        return {
            f"{room}/{name}/{statistic}": value
            for name, window in sorted(drained.items())
            for statistic, value in window.statistics().items()
        }

    def clear(self) -> None:
        """Forget everything."""
        self._windows = {}

    def state_dict(self) -> State:
        """The windows as they stand, by signal."""
        return {name: window.state_dict() for name, window in self._windows.items()}

    def load_state_dict(self, state: State) -> None:
        """Go on with saved windows."""
        self._windows = {}
        for name, saved in state.items():
            self._windows[name] = SignalWindow()
            self._windows[name].load_state_dict(saved)


def by_signal(scalars: Mapping[str, float], room: str) -> dict[str, dict[str, float]]:
    """The statistics of `SignalWindows.drain` among other scalars, by signal."""
    found: dict[str, dict[str, float]] = {}
    for path, value in scalars.items():
        if path.startswith(f"{room}/"):
            name, _, statistic = path.removeprefix(f"{room}/").rpartition("/")
            found.setdefault(name, {})[statistic] = value
    return found
