"""Gradients of batches that several processes share out: each takes a part, all get the mean.

Every loss is a mean over its batch, so the mean of the gradients of equal parts is the gradient of
the whole. Losses and metrics travel with the gradient, in one all-reduce: clipping, the checks
that numbers are finite, and what is logged see those of the whole batch.
"""

import torch
from torch import Tensor

from coach_rl.architectures.batch import Batch, mapped, named_tensors
from coach_rl.architectures.gradient_step import Gradient, Loss, Numbers, eager_gradient
from coach_rl.core.process_group import ProcessGroup

EXTREMES = {"_lowest": torch.amin, "_highest": torch.amax}
"""Functions that merge metrics that are no means, by the end of their names."""


def own_share(
    group: ProcessGroup, data: Batch, index: Tensor | None
) -> tuple[Batch, Tensor | None]:
    """This process's part of a batch, see `GradientStep`; the parts are of one size."""
    if index is not None:
        return data, index.chunk(group.size)[group.rank]
    size = len(next(iter(named_tensors(data).values()))) // group.size
    own = slice(group.rank * size, (group.rank + 1) * size)
    return mapped(lambda column: column[own], data), None


def merged_gradient(group: ProcessGroup) -> Gradient[Batch]:
    """A method that computes the gradient of a batch of which this process has only its share."""

    def gradient(
        loss: Loss[Batch], parameters: Tensor, batch: Batch, scalars: Numbers
    ) -> tuple[Tensor, Tensor, Numbers]:
        own, value, metrics = eager_gradient(loss, parameters, batch, scalars)
        names = [name for name, metric in metrics.items() if not metric.ndim]
        numbers = torch.stack([value, *(metrics[name] for name in names)])
        # The gradient, and a line of numbers for each process, all but its own 0: [P + K * M].
        sent = torch.zeros(own.numel() + group.size * numbers.numel(), device=own.device)
        sent[: own.numel()] = own
        by_process = sent[own.numel() :].view(group.size, -1)
        by_process[group.rank] = numbers
        group.add_up(sent)
        means = by_process.mean(dim=0)
        merged = {
            name: _merged(name, by_process[:, column], means[column])
            for column, name in enumerate(names, start=1)
        }
        return sent[: own.numel()] / group.size, means[0], {**metrics, **merged}

    return gradient


def _merged(name: str, by_process: Tensor, mean: Tensor) -> Tensor:
    """A metric [K] of equal parts of a batch as one of the whole."""
    for ending, extreme in EXTREMES.items():
        if name.endswith(ending):
            return extreme(by_process)
    return mean
