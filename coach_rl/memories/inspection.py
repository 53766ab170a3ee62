"""Looking into a sampler at any point: not finite numbers, shapes, statistics."""

import re
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from coach_rl.core.errors import (
    ConfigurationError,
    NonFiniteError,
    RunError,
    UnknownNameError,
    require,
)
from coach_rl.core.state import State
from coach_rl.memories.memory import Batch
from coach_rl.memories.sampling_chain import END, SamplerUnit, visible

Check = Literal["nan", "shape", "stats"]
CHECKS: tuple[Check, ...] = ("nan", "shape", "stats")
USUAL_INTERVALS = {"nan": 1, "shape": 1, "stats": 100}
"""Batches between two looks where the text of an inspection gives none."""
_PART = re.compile(r"\s*(?P<check>\w+)\s*(?:@\s*(?P<every>\d+)\s*)?")


@dataclass(frozen=True, kw_only=True)
class InspectParameters:
    """What to check, where, how often."""

    point: str = END
    """The sampler unit to look behind; `sample` is what the learner gets."""
    checks: tuple[Check, ...] = CHECKS
    """nan: raise where a number is not finite. shape: raise where a column's shape or dtype
    changes. stats: report mean, std, min and max of each column."""
    every: int = 100
    """Look at every so many-th batch, beginning with the first; the others cost nothing."""

    def __post_init__(self) -> None:
        require(len(self.checks) > 0, "InspectParameters.checks is empty; name at least one check")
        for check in self.checks:
            if check not in CHECKS:
                raise UnknownNameError("inspection check", check, CHECKS)
        require(self.every >= 1, f"InspectParameters.every must be 1 or more, got {self.every}")


def parse_inspections(text: str) -> tuple[InspectParameters, ...]:
    """Inspections as a user types them: `sample:nan,stats@100; gather:shape`.

    Each point names its checks. A check looks at every batch, `stats` at every 100th; `@` and a
    number behind a check say otherwise.

    Raises:
        ConfigurationError: The text has another form; UnknownNameError for a check's name. Whether
            a point exists shows when the memory is built.
    """
    found: list[InspectParameters] = []
    for entry in filter(str.strip, text.split(";")):
        point, colon, names = entry.partition(":")
        if not colon or not point.strip():
            raise _bad_form(entry)
        for name in names.split(","):
            match = _PART.fullmatch(name)
            if match is None:
                raise _bad_form(entry)
            check, every = match["check"], match["every"]
            known: dict[str, Check] = {known: known for known in CHECKS}
            if check not in known:
                raise UnknownNameError("inspection check", check, CHECKS)
            interval = int(every) if every is not None else USUAL_INTERVALS[check]
            _merge(
                found,
                InspectParameters(point=point.strip(), checks=(known[check],), every=interval),
            )
    if not found:
        raise _bad_form(text)
    return tuple(found)


class Inspector(SamplerUnit):
    """Looks at the batch and hands it on unchanged.

    Args:
        params: What to check and how often.
        name: The unit's own name.
    """

    def __init__(self, params: InspectParameters, name: str) -> None:
        self.name, self._params = name, params
        self._batches = 0
        self._forms: dict[str, list[str]] = {}
        self._statistics: dict[str, Tensor] = {}

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """Nothing new."""
        is_due = self._batches % self._params.every == 0
        self._batches += 1
        if is_due:
            columns = visible(batch) if self._params.point == END else batch
            if "nan" in self._params.checks:
                self._check_finite(columns)
            if "shape" in self._params.checks:
                self._check_forms(columns)
            if "stats" in self._params.checks:
                self._statistics = {path: statistics(column) for path, column in columns.items()}
        return {}

    def scalars(self) -> dict[str, float]:
        """The statistics of the last batch looked at, once."""
        found: dict[str, float] = {}
        for path, numbers in self._statistics.items():
            place = f"inspect/{self._params.point}/{path.strip('/')}"
            values = zip(("mean", "std", "min", "max"), numbers.tolist(), strict=True)
            found |= {f"{place}/{name}": float(value) for name, value in values}
        self._statistics = {}
        return found

    def state_dict(self) -> State:
        """How many batches have passed, the shapes seen, and statistics not yet told."""
        return {
            "batches": self._batches,
            "forms": {path: list(form) for path, form in self._forms.items()},
            "statistics": {path: numbers.clone() for path, numbers in self._statistics.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Take over what `state_dict` returned."""
        self._batches = state["batches"]
        self._forms = {path: list(form) for path, form in state["forms"].items()}
        self._statistics = {path: numbers.clone() for path, numbers in state["statistics"].items()}

    def _check_finite(self, columns: Batch) -> None:
        for path, column in columns.items():
            if column.is_floating_point() and float((column * 0).sum()) != 0:  # inf * 0 is NaN
                finite = torch.isfinite(column).reshape(len(column), -1).all(dim=1)
                raise NonFiniteError(
                    f"'{path}' is not finite in {int((~finite).sum())} of {len(column)} sampled "
                    f"rows at inspection point '{self._params.point}'; look at the units before "
                    "it, or at what was added to the memory"
                )

    def _check_forms(self, columns: Batch) -> None:
        forms = {
            path: [str(tuple(column.shape[1:])), str(column.dtype).removeprefix("torch.")]
            for path, column in columns.items()
        }
        before = self._forms or forms
        for path in sorted(forms.keys() | before.keys()):
            now, then = forms.get(path), before.get(path)
            if now != then:
                raise RunError(
                    f"'{path}' at inspection point '{self._params.point}' was "
                    f"{_form(then)} in the batches before and is {_form(now)} now"
                )
        self._forms = forms


def statistics(column: Tensor) -> Tensor:
    """Mean, standard deviation, least and greatest of all elements, [4]."""
    values = column.detach().to(torch.float32)
    deviation, mean = torch.std_mean(values, correction=0)
    return torch.stack([mean, deviation, values.min(), values.max()])


def _merge(found: list[InspectParameters], new: InspectParameters) -> None:
    """Put checks of one point and interval into one inspection."""
    for index, known in enumerate(found):
        if (known.point, known.every) == (new.point, new.every):
            extra = tuple(check for check in new.checks if check not in known.checks)
            found[index] = replace(known, checks=(*known.checks, *extra))
            return
    found.append(new)


def _form(form: list[str] | None) -> str:
    return "absent" if form is None else f"{form[1]} {form[0]}"


def _bad_form(text: str) -> ConfigurationError:
    return ConfigurationError(
        f"'{text.strip()}' is not an inspection; write POINT:CHECK,CHECK@EVERY, e.g. "
        f"sample:nan,stats@100 (checks: {', '.join(CHECKS)}; several points separated by ;)"
    )
