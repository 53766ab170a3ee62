"""Training networks: gradient steps in the configured mode, their metrics, and divergence.

    engine = UpdateEngine(
        (Objective(network=network, loss=loss, optimizer=AdamParameters()),),
        mode="auto",
        planned_updates=150_000,
    )
    engine.set_scalars(learning_rate=3e-4, clip=0.2)
    for index in minibatches:
        engine.step(rollout, index)               # does not wait for the device
    metrics = engine.drain_metrics()              # waits

`GradientStep` is the step itself; `update_modes` has ways to run it, equal to rounding.
"""

import math
from collections.abc import Callable, Sequence
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from coach_rl.architectures.diagnosis import Learner, diagnosis
from coach_rl.architectures.gradient_step import (
    JUDGED,
    Batch,
    GradientStep,
    Numbers,
    Objective,
    Step,
    StepResult,
    TrainedObjective,
    named_tensors,
)
from coach_rl.architectures.gradient_transforms import GradientTransform
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import TargetSync
from coach_rl.architectures.step_metrics import StepMetrics, is_sound
from coach_rl.architectures.update_modes import (
    AUTO,
    EAGER,
    REPAID_AFTER,
    ChosenMode,
    UnableToRun,
    resolved_mode,
)
from coach_rl.core.errors import DivergedError
from coach_rl.core.parts import TimedCall
from coach_rl.core.records import Array, FloatArray
from coach_rl.core.runtime import ON_CPU, Runtime
from coach_rl.core.state import State


class UpdateEngine(Generic[Batch]):
    """Gradient steps on networks' online parameters, and the sync of their targets.

    It checks that losses, gradients and parameters are finite: on the CPU at every step, elsewhere
    where it waits for the device anyway, with every report of metrics and before anything is saved.
    A `DivergedError` names the faults, unless such steps are to be skipped.

    Args:
        objectives: The objectives of a step, in this order.
        targets: Networks whose targets follow, and how; counted in whole steps.
        mode: How to run a step.
        planned_updates: How many steps the run will take, for `auto` on the CPU.
        repaid_after: Steps after which the preparation of a mode has repaid itself, for `auto`.
        owner: The agent that owns the networks, for messages; see `LevelPlace.owner`.
        runtime: The response to steps that are not sound, and the processes that share out each
            batch, whose steps are eager.

    Attributes:
        learners: The objectives and how each is stepped, in their order.
        scalars: The numbers that the next step reads, by name; written by `set_scalars`.
    """

    def __init__(
        self,
        objectives: Sequence[Objective[Batch]],
        *,
        targets: Sequence[tuple[NetworkWrapper, TargetSync]] = (),
        mode: str = EAGER,
        planned_updates: int = 0,
        repaid_after: int = REPAID_AFTER,
        owner: str = "an agent",
        runtime: Runtime = ON_CPU,
    ) -> None:
        divergence = runtime.divergence
        self._skips = divergence.skips
        self._most_skipped = divergence.most_skipped if divergence.skips else 0
        self._targets = tuple(targets)
        self._owner = owner
        self._device = objectives[0].network.online.device
        chosen = resolved_mode(
            mode, self._device, planned_updates=planned_updates, repaid_after=repaid_after
        )
        self._mode = ChosenMode(
            name=chosen, is_auto=mode == AUTO, device=self._device, owner=owner, runtime=runtime
        )
        self._steps: dict[tuple[str, ...] | None, Step[Batch]] = {}  # by `only`
        self.scalars: Numbers = {}
        self._metrics = StepMetrics(skips_unsound=divergence.skips)
        self._last_batch: Batch | None = None  # for a diagnosis
        self._taken = 0  # whole steps, which the targets count
        self.learners: list[TrainedObjective[Batch]] = []
        for each in objectives:
            settings = each.optimizer
            transforms = settings.gradient_transforms(
                each.network, name=each.name, seed=runtime.seed
            )
            optimizer = settings.build(each.network)
            self.learners.append(TrainedObjective(each, optimizer, transforms))
            self.set_scalars(**{each.named("learning_rate"): settings.learning_rate})

    @property
    def steps(self) -> int:
        """Gradient steps taken so far, those before a restore included."""
        return self._metrics.steps

    @steps.setter
    def steps(self, steps: int) -> None:
        self._metrics.steps = steps

    @property
    def updates(self) -> str:
        """The mode and, if it is not the one that `auto` selects here, the reason."""
        mode = self._mode
        return f"{mode.name} ({mode.reason})" if mode.reason else mode.name

    @property
    def mode(self) -> str:
        """The mode of steps: `auto` is resolved, to eager where a step can't be run otherwise."""
        return self._mode.name

    def set_scalars(self, **values: float) -> None:
        """Set numbers that the losses or the optimisers read; they keep until set again."""
        for name, value in values.items():
            if name in self.scalars:
                self.scalars[name].fill_(value)
            else:
                self.scalars[name] = torch.tensor(value, dtype=torch.float32, device=self._device)

    def insert(self, make: Callable[[Objective[Batch]], GradientTransform]) -> None:
        """Put a transform in front of the others of each objective, from the next step on.

        For what takes part in a run and finds the engines among the parts of its agents.

        Args:
            make: Makes the transform of an objective.
        """
        for each in self.learners:
            each.transforms.insert(0, make(each.objective))
        self._steps.clear()

    def step(
        self, data: Batch, index: Tensor | None = None, *, only: tuple[str, ...] | None = None
    ) -> Numbers:
        """One gradient step of every objective, then the targets: `GradientStep`.

        Args:
            data: Columns [M, ...]; M and the dtypes must not change, or a compiled step is
                recompiled.
            index: Rows that make the batch, int64 [B]; None takes all of them as they are.
            only: Names of the objectives to step while the others and all targets rest; None steps
                all.

        Returns:
            The losses' metrics of each sample, [B, ...] each; valid until the next step.

        Raises:
            ConfigurationError: The step cannot be run as `mode` requires.
            DivergedError: On the CPU, the step is not sound.
        """
        if only not in self._steps:
            self._steps[only] = self._prepared(only)
        self._last_batch = data
        try:
            result = self._steps[only](data, index, self.scalars)
        except UnableToRun as error:
            self._mode.fall_back(error)
            self._steps.clear()
            self._steps[only] = self._prepared(only)
            result = self._steps[only](data, index, self.scalars)
        if self._mode.is_starting:
            self._mode.started()
        self._metrics.add(result.names, result.metrics)
        if self._device.type == "cpu" and not _is_sound(result):
            self._require_sound()
        if only is None:
            self._taken += 1
            for network, sync in self._targets:
                if sync.every > 1 and self._taken % sync.every == 0:
                    network.sync_target(sync.rate)
        return result.per_sample

    def drain_metrics(self) -> dict[str, float]:
        """Means of the losses' metrics over the steps since the last call; waits for the device.

        Raises:
            DivergedError: A loss, a gradient or a parameter is not finite.
        """
        self.require_finite()
        self._last_batch = None
        return self._metrics.drain()

    def require_finite(self) -> None:
        """Raise a `DivergedError` if a loss, a gradient or a parameter is not finite; waits."""
        self._require_sound()
        for objective, *_ in self.learners:
            if not torch.isfinite(objective.network.online).all():
                raise self._diverged()

    def checked(self, outputs: FloatArray) -> FloatArray:
        """A network's outputs for acting, [R, ...], if all of them are finite.

        Raises:
            DivergedError: Some of them are not.
        """
        # The sum of squares is a quick test; finite outputs fail it only where they are huge.
        if not math.isfinite(np.vdot(outputs, outputs)) and not np.isfinite(outputs).all():
            raise self._diverged(answer=float(outputs[~np.isfinite(outputs)][0]))
        return outputs

    def learned(self) -> dict[str, Array]:
        """Copies of parameters and mean gradients: `parameters/<name>`, `gradients/<name>`."""
        found = {}
        for each, optimizer, *_ in self.learners:
            flats = {"parameters": each.network.online, "gradients": optimizer.mean_gradient()}
            for kind, flat in flats.items():
                path = f"{kind}/{each.name}/" if each.name else f"{kind}/"
                for name, tensor in each.network.named(flat).items():
                    found[f"{path}{name}"] = tensor.cpu().numpy().copy()
        return found

    def timed_calls(self) -> list[TimedCall]:
        """The calls whose times a profile shows; those inside a recorded step can't be timed."""
        is_eager = self.mode == EAGER
        optimisers = [each.optimizer for each in self.learners if is_eager]
        synced = [network for network, sync in self._targets if is_eager or sync.every > 1]
        return [
            TimedCall(self, "step", "update"),
            TimedCall(self, "drain_metrics", "metrics"),
            *(TimedCall(optimizer, "step", "optimiser") for optimizer in optimisers),
            *(TimedCall(network, "sync_target", "sync") for network in synced),
        ]

    def state_dict(self) -> State:
        """The optimisers' moments and powers, and the mode, which must not change during a run.

        Raises:
            DivergedError: A gradient or a parameter is not finite; a run cannot continue.
        """
        self.require_finite()
        reason = {"reason": self._mode.reason} if self._mode.reason else {}
        transforms = {name: each.state_dict() for name, each in self._saved_transforms().items()}
        return {
            "mode": self.mode,
            **reason,
            **({"transforms": transforms} if transforms else {}),
            "taken": self._taken,
            "optimizers": {
                each.objective.name: each.optimizer.state_dict() for each in self.learners
            },
            "means": self._metrics.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Continue with the saved moments, in the saved mode, and count `steps` from 0.

        If that mode cannot run here, the first step warns (`CoachWarning`) and is eager.
        """
        self._taken = state["taken"]
        self.steps = 0
        for each in self.learners:
            each.optimizer.load_state_dict(state["optimizers"][each.objective.name])
        saved = state.get("transforms", {})
        for name, transform in self._saved_transforms().items():
            if name in saved:  # else it is new, in a fork
                transform.load_state_dict(saved[name])
        self._metrics.load_state_dict(state["means"])
        if state["mode"] != self.mode:
            self._mode.name = state["mode"]
            self._mode.reason = state.get("reason") or "as in its checkpoint"
            self._steps.clear()

    def _saved_transforms(self) -> dict[str, GradientTransform]:
        """The transforms that have state, by their objective and their number among them."""
        return {
            f"{each.objective.name}/{number}": transform
            for each in self.learners
            for number, transform in enumerate(own for own in each.transforms if own.SAVED)
        }

    def _prepared(self, only: tuple[str, ...] | None) -> Step[Batch]:
        """The step of these objectives in this engine's mode."""
        learners = tuple(self.learners)
        targets = self._targets
        if only is not None:
            learners = tuple(each for each in learners if each.objective.name in only)
            targets = ()
        step = GradientStep(
            learners=learners,
            targets=tuple((network, sync.rate) for network, sync in targets if sync.every == 1),
            skips_unsound=self._skips,
        )
        return step if self._mode.name == EAGER else self._mode.prepared(step)

    def _require_sound(self) -> None:
        """Raise a `DivergedError` for a step that was not sound, or too many that were skipped."""
        faults = self._metrics.faults()
        if not faults:
            return
        if (
            any(name.startswith(JUDGED) for name in faults)
            and self._metrics.skipped_in_a_row >= self._most_skipped
        ):
            raise self._diverged()

    def _diverged(self, answer: float | None = None) -> DivergedError:
        learners = [
            Learner(
                name=each.name,
                network=each.network,
                learning_rate=float(self.scalars[each.named("learning_rate")]),
                max_gradient_norm=each.optimizer.max_gradient_norm,
            )
            for each, *_ in self.learners
        ]
        return DivergedError(
            diagnosis(
                self._owner,
                faults=self._metrics.faults(),
                learners=learners,
                batch=named_tensors(self._last_batch),
                answer=answer,
                skipped=self._metrics.skipped_in_a_row,
            )
        )


def _is_sound(result: StepResult) -> bool:
    """Return whether a step on the CPU was sound."""
    if all(map(math.isfinite, result.metrics.tolist())):  # the quick way
        return True
    return bool(is_sound(result.names, result.metrics.numpy()))
