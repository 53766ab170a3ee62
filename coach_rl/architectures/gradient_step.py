"""A gradient step: gather, gradient, its transforms, optimiser, target networks.

An actor and its critics are several objectives, stepped in their order: each sees the parameters
that those before it have just moved, and what they computed for every sample.

A step also returns the numbers by which it is judged: every objective's loss, the norm of its
gradient, and the norm of its parameters afterwards. It is sound if all of them are finite.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, NamedTuple, TypeVar

import torch
from annotated_types import Interval
from torch import Tensor
from torch.linalg import vector_norm

from coach_rl.architectures.gradient_transforms import GradientTransform
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import Optimizer, OptimizerParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.functional.adam import adam_step, next_powers

Batch = TypeVar("Batch")
"""The input of a loss: a NamedTuple of tensors [B, ...], of dicts of tensors, and of None."""


JUDGED = "_"
"""Beginning of the names of the numbers by which a step is judged; they are not reported."""


def mapped(change: Callable[[Tensor], Tensor], batch: Batch) -> Batch:
    """The batch with every tensor changed."""
    value: object = batch
    if isinstance(value, Tensor):
        value = change(value)
    elif value is not None:
        parts = {key: mapped(change, part) for key, part in _parts(value).items()}
        value = parts if isinstance(value, dict) else type(value)(**parts)
    return value  # type: ignore[return-value]  # of the same type


def named_tensors(batch: object, name: str = "") -> dict[str, Tensor]:
    """Every tensor of a batch by its path, e.g. `action` or `observation/position`.

    Args:
        batch: A NamedTuple or dict, which may hold others, or None where something is left out.
        name: Path of the batch itself.
    """
    if isinstance(batch, Tensor):
        return {name: batch}
    prefix = f"{name}/" if name else ""
    return {
        path: tensor
        for key, part in _parts(batch).items()
        for path, tensor in named_tensors(part, f"{prefix}{key}").items()
    }


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """The tensors as arrays; waits for the device."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _parts(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    assert isinstance(value, tuple), f"a batch holds tensors, not {type(value).__name__}"
    return dict(zip(value._fields, value, strict=True))  # type: ignore[attr-defined]  # NamedTuple


Decay = Annotated[float, Interval(ge=0, lt=1)]
"""Factor on a moving average, per step."""


@parameter_class
class AdamParameters(OptimizerParameters):
    """Adam with gradient clipping. Defaults: PyTorch's."""

    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the two moments."""
    epsilon: Positive[float] = 1e-8
    """Added to the root of the second moment."""
    l2: NonNegative[float] = 0.0
    """L2 regularisation: this times the parameters, biases too, is added to their gradient."""

    def build(self, network: NetworkWrapper) -> "Adam":
        return Adam(network, self)


class Adam(Saved):
    """Adam on the online parameters of one network.

    Args:
        network: The network whose parameters are updated in place.
        params: Adam's settings.
    """

    SAVED = (
        SavedAttribute("_first", key="first_moment"),
        SavedAttribute("_second", key="second_moment"),
        "_powers",
    )

    def __init__(self, network: NetworkWrapper, params: AdamParameters) -> None:
        self.network = network
        self.params = params
        online = network.online
        self._first = torch.zeros_like(online)
        self._second = torch.zeros_like(online)
        self._betas = torch.tensor(params.betas, dtype=online.dtype, device=online.device)
        self._powers = torch.ones_like(self._betas)

    def step(self, gradient: Tensor, learning_rate: Tensor) -> None:
        self._powers.copy_(next_powers(self._powers, self._betas))
        adam_step(
            self.network.online,
            gradient,
            self._first,
            self._second,
            self._powers,
            learning_rate,
            betas=self.params.betas,
            epsilon=self.params.epsilon,
        )

    def mean_gradient(self) -> Tensor:
        return self._first / (1 - self._powers[0]).clamp(min=1e-8)

    def tensors(self) -> tuple[Tensor, ...]:
        return self.network.online, self._first, self._second, self._powers


Numbers = dict[str, Tensor]
"""Named scalars or values per sample."""
Loss = Callable[[Tensor, Batch, Numbers], tuple[Tensor, Numbers]]
"""(flat parameters [P], batch, scalars) to (loss, metrics); pure.

Metrics without axes are averaged over steps. Metrics [B, ...] belong to the samples: the losses of
later objectives find them among their scalars, and a step returns them.
"""
Gradient = Callable[[Loss[Batch], Tensor, Batch, Numbers], tuple[Tensor, Tensor, Numbers]]
"""(loss, flat parameters [P], batch, scalars) to (gradient [P], the loss's value, metrics)."""


@dataclass(frozen=True, kw_only=True)
class Objective(Generic[Batch]):
    """A loss and the network that minimises it."""

    network: NetworkWrapper
    """The network whose online parameters are updated in place."""
    loss: Loss[Batch]
    """The loss to minimise."""
    optimizer: OptimizerParameters
    """The optimiser's settings; the scalar `<name>_learning_rate` overrides the learning rate."""
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
"""The type of `GradientStep`; modes other than `eager` make faster ones of it."""


def eager_gradient(
    loss: Loss[Batch], parameters: Tensor, batch: Batch, scalars: Numbers
) -> tuple[Tensor, Tensor, Numbers]:
    """The loss's gradient [P], its value and its metrics."""
    leaf = parameters.detach().requires_grad_()
    value, metrics = loss(leaf, batch, scalars)
    (gradient,) = torch.autograd.grad(value, leaf)
    return gradient, value.detach(), {name: metric.detach() for name, metric in metrics.items()}


class TrainedObjective(NamedTuple, Generic[Batch]):
    """An objective and how it is stepped."""

    objective: Objective[Batch]
    """The loss and its network."""
    optimizer: Optimizer
    """The optimiser of the network."""
    transforms: list[GradientTransform]
    """The transforms of its gradient, in their order."""
    gradient: Gradient[Batch] = eager_gradient
    """Method that computes the gradient."""


@dataclass(frozen=True, kw_only=True)
class GradientStep(Generic[Batch]):
    """One gradient step of each objective in order, then the targets."""

    learners: tuple[TrainedObjective[Batch], ...]
    """The objectives."""
    targets: tuple[tuple[NetworkWrapper, float], ...]
    """Networks whose targets move towards them by this rate."""
    skips_unsound: bool = False
    """If True, a step that is not sound leaves everything as it was."""

    def __call__(self, data: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        """Update parameters and targets in place.

        Args:
            data: Columns [M, ...].
            index: Rows that make the batch, int64 [B]; None takes all.
            scalars: Learning rates, and numbers for the losses.
        """
        # `index_select` takes a fifth of the time of `column[index]` where columns are bytes.
        batch = data if index is None else mapped(lambda each: each.index_select(0, index), data)
        means: Numbers = {}
        judged: Numbers = {}
        per_sample: Numbers = {}
        before = [tensor.clone() for tensor in self.written] if self.skips_unsound else []
        for objective, optimizer, transforms, gradient_of in self.learners:
            gradient, loss, metrics = gradient_of(
                objective.loss, objective.network.online, batch, scalars | per_sample
            )
            for transform in transforms:
                gradient, found = transform(gradient)
                for name, value in found.items():
                    metrics[objective.named(name)] = value
            optimizer.step(gradient, scalars[objective.named("learning_rate")])
            norm = objective.named("gradient_norm")
            judged |= {
                f"{JUDGED}{objective.named('loss')}": loss,
                f"{JUDGED}{norm}": metrics[norm],
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
    def is_traceable(self) -> bool:
        """True if all transforms can be compiled, or captured, with the rest of the step."""
        return all(each.traceable for learner in self.learners for each in learner.transforms)

    @property
    def written(self) -> list[Tensor]:
        """Every tensor that the step writes to."""
        own: list[Tensor] = []
        for each in self.learners:
            own += each.optimizer.tensors()
            for transform in each.transforms:
                own += transform.tensors()
        return [*own, *(network.target for network, _ in self.targets)]
