"""Looking into a sampler at any point: not finite numbers, shapes, statistics."""

import torch
from torch import Tensor

from coach_rl.core.errors import NonFiniteError, RunError
from coach_rl.core.inspection import END, InspectParameters
from coach_rl.core.state import State
from coach_rl.memories.columns import Columns
from coach_rl.memories.sampling_chain import SamplerUnit, visible


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

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
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

    def metrics(self) -> dict[str, float]:
        """The statistics of the last batch looked at, once."""
        found: dict[str, float] = {}
        for path, numbers in self._statistics.items():
            place = f"inspect/{self._params.point}/{path.strip('/')}"
            values = zip(("mean", "std", "min", "max"), numbers.tolist(), strict=True)
            found |= {f"{place}/{name}": float(value) for name, value in values}
        self._statistics = {}
        return found

    def state_dict(self) -> State:
        """Return the number of batches so far, the shapes seen, and statistics not yet reported."""
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

    def _check_finite(self, columns: Columns) -> None:
        for path, column in columns.items():
            if column.is_floating_point() and float((column * 0).sum()) != 0:  # inf * 0 is NaN
                finite = torch.isfinite(column).reshape(len(column), -1).all(dim=1)
                raise NonFiniteError(
                    f"'{path}' is not finite in {int((~finite).sum())} of {len(column)} sampled "
                    f"rows at inspection point '{self._params.point}'; look at the units before "
                    "it, or at what was added to the memory"
                )

    def _check_forms(self, columns: Columns) -> None:
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
    std, mean = torch.std_mean(values, correction=0)
    return torch.stack([mean, std, values.min(), values.max()])


def _form(form: list[str] | None) -> str:
    return "absent" if form is None else f"{form[1]} {form[0]}"
