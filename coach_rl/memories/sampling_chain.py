"""Samplers are chains of small units with declared inputs and outputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

import torch

from coach_rl.core.errors import ConfigurationError, RunError, UnknownNameError
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.memories.columns import INTERNAL, Columns


class SamplerUnit(Saved, ABC):
    """One step on the way to a batch: reads some columns, makes others.

    A column is a tensor [B, ...] under a flat path. Positions, and what is computed from the small
    columns, lie on the CPU; what `gather` takes out of the store lies on the learner's device, and
    so does everything behind `to_device`.
    """

    name: str
    """Names it in errors and as a point to inspect; different for each unit of a chain."""
    inputs: tuple[str, ...] = ()
    """Paths it reads; one that ends with a slash stands for any path that begins so."""
    outputs: tuple[str, ...] = ()
    """Paths it makes or replaces."""

    @abstractmethod
    def __call__(self, batch: Columns, size: int) -> Columns:
        """The columns of `outputs`, each [B, ...].

        Args:
            batch: What the units before it have made; not to be written to.
            size: B.
        """

    def metrics(self) -> dict[str, float]:
        """Metrics since the last call, by metric name."""
        return {}


class SamplerChain(Saved):
    """Units in a row; each finds its inputs among the outputs of those before it.

    Args:
        units: First to last.

    Raises:
        ConfigurationError: Two units have one name, or an input that no unit before makes.
    """

    SAVED = (SavedAttribute("_by_name", inline=True),)

    def __init__(self, units: Sequence[SamplerUnit]) -> None:
        self.units = tuple(units)
        self._by_name = {unit.name: unit for unit in self.units}
        self._chain = list(self.units)  # with watchers in between
        self._is_checked = False
        names = [unit.name for unit in self.units]
        for name in names:
            if names.count(name) > 1:
                raise ConfigurationError(
                    f"two sampler units are named '{name}'; give each its own name"
                )
        made: set[str] = set()
        for unit in self.units:
            for wanted in unit.inputs:
                if not any(_serves(path, wanted) for path in made):
                    raise ConfigurationError(
                        f"sampler unit '{unit.name}' needs '{wanted}', which no unit before it "
                        f"makes; made so far: {', '.join(sorted(made)) or 'nothing'}"
                    )
            made |= set(unit.outputs)

    def __call__(self, size: int) -> Columns:
        """A batch of B = `size`."""
        batch: Columns = {}
        for unit in self._chain:
            made = unit(batch, size)
            if not self._is_checked and set(made) != set(unit.outputs):
                raise RunError(
                    f"sampler unit '{unit.name}' declares the outputs {sorted(unit.outputs)} and "
                    f"made {sorted(made)}"
                )
            batch |= made
        self._is_checked = True
        return visible(batch)

    def watch(self, name: str, look: Callable[[Columns], None]) -> None:
        """Show what a unit makes, from now on.

        Args:
            name: The unit's.
            look: Called with the columns of its outputs, before the next unit takes its turn.
        """
        place = next(place for place, unit in enumerate(self._chain) if unit.name == name)
        self._chain.insert(place + 1, _Watcher(self._chain[place].outputs, look))

    def metrics(self) -> dict[str, float]:
        """The units' metrics since the last call."""
        return {name: value for unit in self.units for name, value in unit.metrics().items()}


END = "sample"
"""The place behind the last unit."""


def inserted(units: Iterable[SamplerUnit], new: SamplerUnit, *, after: str) -> list[SamplerUnit]:
    """The units with one more behind the one named `after`; `sample` means behind all.

    Args:
        units: First to last.
        new: The one more.
        after: Where.

    Raises:
        UnknownNameError: There is no unit of that name.
    """
    units = list(units)
    names = [unit.name for unit in units]
    if after not in (*names, END):
        raise UnknownNameError("sampler unit", after, (*names, END))
    place = len(units) if after == END else names.index(after) + 1
    return [*units[:place], new, *units[place:]]


def visible(batch: Columns) -> Columns:
    """The columns that are handed out."""
    return {path: column for path, column in batch.items() if not path.startswith(INTERNAL)}


class ToDevice(SamplerUnit):
    """Brings to the learner's device what is not there yet."""

    name = "to_device"

    def __init__(self, paths: Sequence[str], device: torch.device) -> None:
        self.outputs = self.inputs = tuple(path for path in paths if not path.startswith(INTERNAL))
        self._device = device

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """The same columns."""
        return {path: batch[path].to(self._device, non_blocking=True) for path in self.outputs}


class _Watcher(SamplerUnit):
    """Shows what the unit before it has made."""

    name = "watcher"

    def __init__(self, paths: Sequence[str], look: Callable[[Columns], None]) -> None:
        self._paths, self._look = paths, look

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Nothing new."""
        self._look({path: batch[path] for path in self._paths})
        return {}


def _serves(made: str, wanted: str) -> bool:
    return made == wanted or (wanted.endswith("/") and made.startswith(wanted))
