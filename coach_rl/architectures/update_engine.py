"""From pure losses to gradient steps: gather, gradient, clip, Adam, target sync, in one call.

    engine = UpdateEngine(
        (Objective(network=network, loss=loss, optimizer=AdamParameters()),),
        mode="auto",
        planned_updates=150_000,
    )
    engine.set_scalars(learning_rate=3e-4, clip=0.2)
    for index in minibatches:
        engine.step(data, index)                  # no host synchronisation
    metrics = engine.drain_metrics()              # one; raises where learning has diverged

An actor and its critics are several objectives, stepped in their order: each sees the parameters
that those before it have just moved, and what they computed for every sample.

Three ways to run the same step, equal to rounding: `eager` takes the gradients by autograd on the
flat parameters; `compiled` runs the step as one function made by torch.compile from its functional
form, on the CPU only; `captured` records the eager step once as a CUDA graph and replays it. `auto`
compiles on the CPU where a C++ compiler is present and the planned updates repay the 10 to 25
seconds; it never captures.
"""

import gc
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from coach_rl.architectures.divergence import Learner, diagnosis
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.step_metrics import StepMetrics
from coach_rl.core.errors import CoachWarning, DivergedError, require
from coach_rl.core.records import FloatArray
from coach_rl.core.state import State
from coach_rl.core.update_modes import UpdateMode, cannot_run
from coach_rl.functional.adam import adam_step, clipped_gradient, next_powers

Batch = dict[str, Tensor]
"""Columns by path, e.g. `/actions`, each [B, ...]."""
Loss = Callable[[Tensor, Batch, Batch], tuple[Tensor, dict[str, Tensor]]]
"""(flat parameters [P], batch, scalars) to (loss, metrics); pure.

Metrics without axes are averaged for `drain_metrics`; those with one [B, ...] are what the loss has
to say about each sample: later objectives find them in their batch, and `step` returns them.
"""
Metrics = tuple[tuple[str, ...], Tensor]
"""Names, and their values [M]."""
WholeStep = Callable[[Batch, Batch], tuple[Metrics, Batch]]
"""(batch, scalars) to (metrics to be averaged, values per sample); writes parameters."""

COMPILE_REPAID_AFTER = 40_000
"""Updates after which compiling has repaid itself: about 25 s at 0.6 ms saved per update."""
INSIDE_A_MODULE = (".module", "._modules", "._parameters", "._buffers")
"""What the compiler's name of something has in it that is part of a network."""
CAPTURE_WARM_UP = 3
"""Steps run, and undone, before a CUDA graph is recorded: libraries allocate in the first ones."""


@dataclass(frozen=True, kw_only=True)
class AdamParameters:
    """Adam with gradient clipping. Defaults: PyTorch's."""

    learning_rate: float = 1e-3
    """Step size; an agent may multiply it by a schedule."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Decay of the two moments."""
    epsilon: float = 1e-8
    """Added to the root of the second moment."""
    max_gradient_norm: float | None = None
    """Largest norm of the whole gradient; None never clips."""
    l2: float = 0.0
    """L2 regularisation: this times the parameters, biases too, is added to their gradient."""

    def __post_init__(self) -> None:
        require(
            self.learning_rate > 0,
            f"AdamParameters.learning_rate must be more than 0, got {self.learning_rate}",
        )
        require(
            all(0 <= beta < 1 for beta in self.betas),
            f"AdamParameters.betas must lie in [0, 1), got {self.betas}",
        )
        require(self.l2 >= 0, f"AdamParameters.l2 must be 0 or more, got {self.l2}")
        require(
            self.max_gradient_norm is None or self.max_gradient_norm > 0,
            f"AdamParameters.max_gradient_norm must be more than 0, got {self.max_gradient_norm}",
        )


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A loss, the network it moves, and how."""

    network: NetworkWrapper
    """Whose online parameters are updated in place."""
    loss: Loss
    """What shall become small."""
    optimizer: AdamParameters
    """Adam's settings; the scalar `<name>_learning_rate` overrides the step size."""
    name: str = ""
    """Stands before its scalars and metrics; may be empty where it is the only one."""

    def named(self, quantity: str) -> str:
        """The name of one of its scalars or metrics."""
        return f"{self.name}_{quantity}" if self.name else quantity


@dataclass(frozen=True, kw_only=True)
class TargetSync:
    """How a target network follows."""

    rate: float = 1.0
    """Polyak's tau: target += rate * (online - target); 1 copies."""
    every: int = 1
    """Gradient steps from one sync to the next."""

    def __post_init__(self) -> None:
        require(0 < self.rate <= 1, f"TargetSync.rate must lie in (0, 1], got {self.rate}")
        require(self.every >= 1, f"TargetSync.every must be 1 or more, got {self.every}")


class UpdateEngine:
    """Gradient steps on networks' online parameters, and the sync of their targets.

    Whether all numbers are finite is looked at where the device is waited for anyway: with every
    report of metrics, and before anything is saved. A `DivergedError` says what went wrong.

    Args:
        objectives: What a step does, in this order.
        targets: Networks whose targets follow, and how; counted in whole steps.
        mode: How to run a step.
        planned_updates: How many steps the run will take, for `auto`.
        repaid_after: Steps after which compiling has repaid itself, for `auto`.
        owner: Whose networks they are, for errors; see `LevelPlace.owner`.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        *,
        targets: Sequence[tuple[NetworkWrapper, TargetSync]] = (),
        mode: UpdateMode,
        planned_updates: int,
        repaid_after: int = COMPILE_REPAID_AFTER,
        owner: str = "an agent",
    ) -> None:
        self._objectives, self._targets = tuple(objectives), tuple(targets)
        self._owner = owner
        self._device = objectives[0].network.online.device
        self.mode = _resolved(mode, self._device, planned_updates, repaid_after)
        self._optimizers = {each.name: _Adam(each) for each in self._objectives}
        self._scalars: Batch = {}
        self._metrics = StepMetrics()
        self._batch: Batch = {}  # what the last step learned from, for a diagnosis
        self._taken = 0  # whole steps, which the targets count
        self._made: dict[tuple[tuple[str, ...], bool], Callable[[Batch, Tensor | None], Batch]] = {}
        for each in self._objectives:
            self.set_scalars(**{each.named("learning_rate"): each.optimizer.learning_rate})

    @property
    def steps(self) -> int:
        """Gradient steps taken so far, those before a restore included."""
        return self._metrics.steps

    def set_scalars(self, **values: float) -> None:
        """Set numbers the losses or the optimisers read; they keep until set again."""
        for name, value in values.items():
            if name in self._scalars:
                self._scalars[name].fill_(value)
            else:
                self._scalars[name] = torch.tensor(value, dtype=torch.float32, device=self._device)

    def step(
        self, data: Batch, index: Tensor | None = None, *, only: tuple[str, ...] | None = None
    ) -> Batch:
        """One gradient step of every objective, then the targets.

        Args:
            data: Columns [M, ...]; keep M and the dtypes the same over a run, or it compiles anew.
            index: Which rows make the batch, int64 [B]; None takes all of them as they are.
            only: Names of the objectives to step, the others and the targets rest; None: all.

        Returns:
            What the losses say of each sample, [B, ...] each; valid until the next step.
        """
        names = tuple(each.name for each in self._objectives) if only is None else only
        if (names, only is None) not in self._made:
            self._made[names, only is None] = self._prepared(names, sync=only is None)
        self._batch = data
        outputs = self._made[names, only is None](data, index)
        if only is None:
            self._taken += 1
            for network, sync in self._targets:
                if sync.every > 1 and self._taken % sync.every == 0:
                    network.sync_target(sync.rate)
        return outputs

    def drain_metrics(self) -> dict[str, float]:
        """Means of the losses' metrics over the steps since the last call; waits for the device.

        Raises:
            DivergedError: A gradient or a parameter is not finite.
        """
        self.require_finite()
        self._batch = {}
        return self._metrics.drain()

    def require_finite(self) -> None:
        """Raise a `DivergedError` where a gradient or a parameter is not finite; waits."""
        faults = self._metrics.faults()
        norms = [each.named("gradient_norm") for each in self._objectives]
        if any(norm in faults for norm in norms) or not all(
            each.is_finite for each in self._learners()
        ):
            raise self._diverged()

    def checked(self, answers: FloatArray) -> FloatArray:
        """What a network answered for acting, [R, ...], if all of it is finite.

        Raises:
            DivergedError: Some of it is not.
        """
        # The sum of squares is a quick test; sound answers fail it only where they are huge.
        if not math.isfinite(np.vdot(answers, answers)) and not np.isfinite(answers).all():
            raise self._diverged(answer=float(answers[~np.isfinite(answers)][0]))
        return answers

    def state_dict(self) -> State:
        """Adam's moments and powers, and the mode, which must not change during a run.

        Raises:
            DivergedError: A gradient or a parameter is not finite; nobody could go on from it.
        """
        self.require_finite()
        return {
            "mode": self.mode,
            "taken": self._taken,
            "optimizers": {name: adam.state_dict() for name, adam in self._optimizers.items()},
            "means": self._metrics.state_dict(),
        }

    def load_state_dict(self, state: State, *, steps: int = 0) -> None:
        """Go on with the saved moments, in the saved mode.

        Where that cannot run, the first step says so by a `CoachWarning` and is taken eagerly.

        Args:
            state: What `state_dict` returned.
            steps: Gradient steps behind it, which a diagnosis counts on from.
        """
        self._taken, self._metrics.steps = state["taken"], steps
        for name, adam in self._optimizers.items():
            adam.load_state_dict(state["optimizers"][name])
        self._metrics.load_state_dict(state["means"])
        if state["mode"] != self.mode:
            self.mode = state["mode"]
            self._made.clear()

    def _prepared(
        self, names: tuple[str, ...], *, sync: bool
    ) -> Callable[[Batch, Tensor | None], Batch]:
        """The step of these objectives in this engine's mode."""
        if (reason := cannot_run(self.mode, str(self._device))) is not None:
            warnings.warn(
                f"this run's update_mode '{self.mode}' {reason}; its updates are eager from now "
                "on, equal to rounding",
                CoachWarning,
                stacklevel=2,
            )
            self.mode = "eager"
        objectives = [each for each in self._objectives if each.name in names]
        targets = [
            (network, each.rate) for network, each in self._targets if sync and each.every == 1
        ]
        gradient = _functional_gradient if self.mode == "compiled" else _autograd_gradient

        def whole_step(batch: Batch, scalars: Batch) -> tuple[Metrics, Batch]:
            metrics: Batch = {}
            for each in objectives:
                found, said = gradient(each, batch, scalars)
                said[each.named("gradient_norm")] = self._optimizers[each.name].step(found, scalars)
                metrics |= said
                batch = batch | {name: value for name, value in said.items() if value.ndim}
            for network, rate in targets:
                network.sync_target(rate)
            means = {name: value for name, value in metrics.items() if not value.ndim}
            outputs = {name: value for name, value in metrics.items() if value.ndim}
            return (tuple(means), torch.stack(list(means.values()))), outputs

        match self.mode:
            case "compiled":
                return self._compiled(whole_step)
            case "captured":
                return self._captured(whole_step)
        return self._eager(whole_step)

    def _eager(self, whole_step: WholeStep) -> Callable[[Batch, Tensor | None], Batch]:
        def step(data: Batch, index: Tensor | None) -> Batch:
            means, outputs = whole_step(_gathered(data, index), self._scalars)
            self._metrics.add(*means)
            return outputs

        return step

    def _compiled(self, whole_step: WholeStep) -> Callable[[Batch, Tensor | None], Batch]:
        def functional_step(
            data: Batch, index: Tensor | None, scalars: Batch
        ) -> tuple[Metrics, Batch]:
            return whole_step(_gathered(data, index), scalars)

        # Code of its own, so that no other engine's step can be taken for this one.
        functional_step.__code__ = functional_step.__code__.replace()
        compiled = torch.compile(
            functional_step,
            fullgraph=True,
            dynamic=False,
            options={"cpp_wrapper": True, "guard_filter_fn": _checks_kept},
        )
        is_new = True

        def step(data: Batch, index: Tensor | None) -> Batch:
            nonlocal is_new
            with torch.inference_mode():
                means, outputs = compiled(data, index, self._scalars)
                self._metrics.add(*means)
            if is_new:
                is_new = False
                # The compiler leaves so many objects that looking for garbage among them again and
                # again shows in the time of a step.
                gc.collect()
                gc.freeze()
            return outputs

        return step

    def _captured(self, whole_step: WholeStep) -> Callable[[Batch, Tensor | None], Batch]:
        graph = torch.cuda.CUDAGraph()
        static: Batch = {}  # what the graph reads
        results: list[tuple[Metrics, Batch]] = []  # what it writes

        def record() -> None:
            kept = [(tensor, tensor.clone()) for tensor in self._mutable()]
            with torch.cuda.device(self._device):  # streams are made on the current device
                side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch has no types
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    for _ in range(CAPTURE_WARM_UP):
                        whole_step(static, self._scalars)
                torch.cuda.current_stream().wait_stream(side)
                with torch.cuda.graph(graph, stream=side):
                    results.append(whole_step(static, self._scalars))
            for tensor, value in kept:
                tensor.copy_(value)

        def step(data: Batch, index: Tensor | None) -> Batch:
            if not static:
                static.update(
                    {name: value.clone() for name, value in _gathered(data, index).items()}
                )
                record()
            for name, buffer in static.items():
                if index is None:
                    buffer.copy_(data[name], non_blocking=True)
                else:
                    torch.index_select(data[name], 0, index, out=buffer)
            graph.replay()
            (names, values), outputs = results[0]
            self._metrics.add(names, values.clone())  # the next replay writes to it again
            return outputs

        return step

    def _learners(self) -> list[Learner]:
        return [
            Learner(
                name=each.name,
                network=each.network,
                learning_rate=float(self._scalars[each.named("learning_rate")]),
                max_gradient_norm=each.optimizer.max_gradient_norm,
            )
            for each in self._objectives
        ]

    def _diverged(self, answer: float | None = None) -> DivergedError:
        return DivergedError(
            diagnosis(
                self._owner,
                faults=self._metrics.faults(),
                learners=self._learners(),
                batch=self._batch,
                answer=answer,
            )
        )

    def _mutable(self) -> list[Tensor]:
        """Every tensor a step writes to."""
        own = [tensor for adam in self._optimizers.values() for tensor in adam.tensors()]
        targets = [network.target for network, _ in self._targets]
        return [*own, *targets]


class _Adam:
    """Adam's memory for one objective."""

    def __init__(self, objective: Objective) -> None:
        self._network, self._params = objective.network, objective.optimizer
        self._learning_rate = objective.named("learning_rate")
        device = self._network.online.device
        self._first = torch.zeros(self._network.size, device=device)
        self._second = torch.zeros(self._network.size, device=device)
        self._betas = torch.tensor(self._params.betas, device=device)
        self._powers = torch.ones(2, device=device)

    def step(self, gradient: Tensor, scalars: Batch) -> Tensor:
        """Clip and step in place; returns the gradient's norm before clipping."""
        if self._params.l2:
            gradient = gradient + self._params.l2 * self._network.online
        gradient, norm = clipped_gradient(gradient, self._params.max_gradient_norm)
        self._powers.copy_(next_powers(self._powers, self._betas))
        parameters, first, second = adam_step(
            self._network.online,
            gradient,
            self._first,
            self._second,
            self._powers,
            scalars[self._learning_rate],
            betas=self._params.betas,
            epsilon=self._params.epsilon,
        )
        self._network.online.copy_(parameters)
        self._first.copy_(first)
        self._second.copy_(second)
        return norm

    def tensors(self) -> tuple[Tensor, ...]:
        """What `step` writes to."""
        return self._network.online, self._first, self._second, self._powers

    def state_dict(self) -> State:
        return {
            "first_moment": self._first.clone(),
            "second_moment": self._second.clone(),
            "powers": self._powers.clone(),
        }

    def load_state_dict(self, state: State) -> None:
        self._first.copy_(state["first_moment"])
        self._second.copy_(state["second_moment"])
        self._powers.copy_(state["powers"])


def _gathered(data: Batch, index: Tensor | None) -> Batch:
    return data if index is None else {name: column[index] for name, column in data.items()}


def _autograd_gradient(objective: Objective, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
    leaf = objective.network.online.detach().requires_grad_()
    loss, metrics = objective.loss(leaf, batch, scalars)
    (gradient,) = torch.autograd.grad(loss, leaf)
    return gradient, {name: value.detach() for name, value in metrics.items()}


def _functional_gradient(
    objective: Objective, batch: Batch, scalars: Batch
) -> tuple[Tensor, Batch]:
    take = torch.func.grad_and_value(objective.loss, has_aux=True)
    gradient, (_, metrics) = take(objective.network.online, batch, scalars)
    return gradient, dict(metrics)


def _checks_kept(checks: Sequence[Any]) -> list[bool]:
    """Which of the compiler's checks stay in front of every call of a compiled step.

    Those of what is passed in, of torch's global state, and of all that a loss reads elsewhere but
    networks: when it changes, the step is compiled anew. Those of modules, optimisers and torch's
    own functions go: nineteen in twenty, and up to a third of a step of PPO.
    """

    def is_kept(check: Any) -> bool:
        is_argument = check.name.partition("[")[0] in ("", "data", "index", "scalars")
        is_network = any(part in check.name for part in INSIDE_A_MODULE)
        return is_argument or (".loss" in check.name and not is_network)

    return [is_kept(check) for check in checks]


def _resolved(
    mode: UpdateMode, device: torch.device, planned_updates: int, repaid_after: int
) -> Literal["eager", "compiled", "captured"]:
    if mode == "auto":
        worth = planned_updates >= repaid_after
        can_compile = device.type == "cpu" and cannot_run("compiled", "cpu") is None
        return "compiled" if worth and can_compile else "eager"
    reason = cannot_run(mode, str(device))
    others = "'auto', 'captured' or 'eager'" if device.type == "cuda" else "'auto' or 'eager'"
    require(reason is None, f"update_mode='{mode}' {reason}; use {others}")
    return mode
