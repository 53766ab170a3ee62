"""A gradient step: gather, gradient, clip, Adam, target networks.

An actor and its critics are several objectives, stepped in their order: each sees the parameters
that those before it have just moved, and what they computed for every sample.

A step also returns the numbers by which it is judged: every objective's loss, the norm of its
gradient, and the norm of its parameters afterwards. It is sound if all of them are finite.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple

import torch
from torch import Tensor
from torch.linalg import vector_norm

from coach_rl.architectures.batch import Batch, mapped
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import Adam, AdamParameters

Numbers = dict[str, Tensor]
"""Named scalars or values per sample."""
Loss = Callable[[Tensor, Batch, Numbers], tuple[Tensor, Numbers]]
"""(flat parameters [P], batch, scalars) to (loss, metrics); pure.

Metrics without axes are averaged over steps. Metrics [B, ...] belong to the samples: the losses of
later objectives find them among their scalars, and a step returns them.
"""
Gradient = Callable[[Loss[Batch], Tensor, Batch, Numbers], tuple[Tensor, Tensor, Numbers]]
"""(loss, flat parameters [P], batch, scalars) to (gradient [P], the loss's value, metrics)."""
JUDGED = "_"
"""Beginning of the names of the numbers by which a step is judged; they are not reported."""


@dataclass(frozen=True, kw_only=True)
class Objective(Generic[Batch]):
    """A loss and the network that minimises it."""

    network: NetworkWrapper
    """The network whose online parameters are updated in place."""
    loss: Loss[Batch]
    """The loss to minimise."""
    optimizer: AdamParameters
    """Adam's settings; the scalar `<name>_learning_rate` overrides the learning rate."""
    name: str = ""
    """Prefix of its scalars and metrics; may be empty for the only objective."""

    def named(self, quantity: str) -> str:
        """The full name of one of its scalars or metrics."""
        return f"{self.name}_{quantity}" if self.name else quantity


class StepResult(NamedTuple):
    """Results of a gradient step."""

    names: tuple[str, ...]
    """Names of the metrics that are averaged over steps, and of those that judge the step."""
    metrics: Tensor
    """Their values, [M]."""
    per_sample: Numbers
    """Metrics of each sample, [B, ...]; valid until the next step."""


Step = Callable[[Batch, Tensor | None, Numbers], StepResult]
"""The type of `GradientStep`; `recorded_steps` makes faster ones of it."""


def eager_gradient(
    loss: Loss[Batch], parameters: Tensor, batch: Batch, scalars: Numbers
) -> tuple[Tensor, Tensor, Numbers]:
    """The loss's gradient [P], its value and its metrics."""
    leaf = parameters.detach().requires_grad_()
    value, metrics = loss(leaf, batch, scalars)
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient, value.detach(), {name: metric.detach() for name, metric in metrics.items()}


@dataclass(frozen=True, kw_only=True)
class GradientStep(Generic[Batch]):
    """One gradient step of each objective in order, then the targets."""

    learners: tuple[tuple[Objective[Batch], Adam], ...]
    """The objectives, each with its optimiser."""
    targets: tuple[tuple[NetworkWrapper, float], ...]
    """Networks whose targets move towards them by this rate."""
    gradient: Gradient[Batch] = eager_gradient
    """Method that computes the gradient."""
    skips_unsound: bool = False
    """If True, a step that is not sound leaves everything as it was."""

    def __call__(self, data: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        """Update parameters and targets in place.

        Args:
            data: Columns [M, ...].
            index: Rows that make the batch, int64 [B]; None takes all.
            scalars: Learning rates, and numbers for the losses.
        """
        batch = data if index is None else mapped(lambda column: column[index], data)
        means: Numbers = {}
        judged: Numbers = {}
        per_sample: Numbers = {}
        before = [tensor.clone() for tensor in self.written] if self.skips_unsound else []
        for objective, adam in self.learners:
            gradient, loss, metrics = self.gradient(
                objective.loss, objective.network.online, batch, scalars | per_sample
            )
            learning_rate = scalars[objective.named("learning_rate")]
            norm = metrics[objective.named("gradient_norm")] = adam.step(gradient, learning_rate)
            judged |= {
                f"{JUDGED}{objective.named('loss')}": loss,
                f"{JUDGED}{objective.named('gradient_norm')}": norm,
                f"{JUDGED}{objective.named('parameter_norm')}": vector_norm(
                    objective.network.online
                ),
            }
            means |= {name: value for name, value in metrics.items() if not value.ndim}
            per_sample |= {name: value for name, value in metrics.items() if value.ndim}
        for network, rate in self.targets:
            network.sync_target(rate)
        if self.skips_unsound:
            is_sound = torch.isfinite(torch.stack(list(judged.values()))).all()
            for tensor, value in zip(self.written, before, strict=True):
                tensor.copy_(torch.where(is_sound, tensor, value))
        numbers = means | judged
        return StepResult(tuple(numbers), torch.stack(list(numbers.values())), per_sample)

    @property
    def written(self) -> list[Tensor]:
        """Every tensor that the step writes to."""
        own = [tensor for _, adam in self.learners for tensor in adam.tensors()]
        return [*own, *(network.target for network, _ in self.targets)]
