"""Faster ways to run an eager gradient step: compiled for the CPU, or captured as a CUDA graph.

Nothing here changes what a step computes. All ways are equal to rounding.
"""

import gc
import os
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from coach_rl.architectures.gradient_step import (
    Batch,
    GradientStep,
    Loss,
    Numbers,
    Step,
    StepResult,
    TrainedObjective,
    mapped,
    named_tensors,
)
from coach_rl.architectures.optimizers import Optimizer
from coach_rl.architectures.update_modes import UnableToRun
from coach_rl.core.errors import ConfigurationError

COMPILER_OPTIONS = {
    "cpp_wrapper": True,
    "cpp_cache_precompile_headers": False,
    "cpp.vec_isa_ok": True,
}
"""Settings with which torch's inductor compiles a step.

A step is one file of C++, which gains nothing from headers compiled before it: that takes as long
as the step itself. The vector instructions that the processor has are used without compiling a
trial program for each of them. Neither changes what is computed.
"""
CPP_ERROR = "CppCompileError"
"""Name of the error of a C++ compiler that failed; it may have been ended from outside.

A terminal sends Ctrl-C to the compiler too, and a run that is stopped finishes its step first: it
compiles once more.
"""
INSIDE_A_MODULE = (".module", "._modules", "._parameters", "._buffers")
"""Part of the compiler's name of a value that belongs to a network."""
ARGUMENTS = ("", "batch", "index", "scalars", "gradient", "learning_rate")
"""Beginning of the compiler's name of a value that is an argument; nothing: global state."""
MOST_GRAPHS = 8
"""CUDA graphs of a step, each for batches of another shape; others run eagerly."""
CAPTURE_WARM_UP = 3
"""Steps run, and undone, before a CUDA graph is recorded: libraries allocate in the first ones."""
_abandoned: list[torch.cuda.CUDAGraph] = []
"""Graphs whose capture failed: torch's allocator keeps a reference to each without owning it."""


Shape = int | tuple[int, ...]
"""Rows of a batch that is taken by index, or of each of its columns."""
Result = TypeVar("Result")
Function = Callable[..., Any]
"""A step, or a half of one."""
Faster = Callable[[Function, Sequence[Tensor]], Function]
"""(function, the tensors that it writes to) to a faster one."""


class Compiled:
    """Steps compiled for the CPU."""

    activity = "compiling"

    def cannot_run(self, device: str) -> str | None:
        if device != "cpu":
            return f"compiles for the CPU and this agent is on '{device}'"
        if not compiler_present():
            return "needs a C++ compiler and none is on the PATH (g++ is one)"
        return None

    def prepared(self, step: GradientStep[Batch], device: torch.device) -> Step[Batch]:  # noqa: ARG002 - the CPU
        return compiled(step)


class Captured:
    """Steps captured as CUDA graphs."""

    activity = "recording"

    def cannot_run(self, device: str) -> str | None:
        if not device.startswith("cuda"):
            return f"records a CUDA graph and this agent is on '{device}'"
        return None

    def prepared(self, step: GradientStep[Batch], device: torch.device) -> Step[Batch]:
        return captured(step, device)


def compiler_present() -> bool:
    """True if torch.compile finds a C++ compiler: `$CXX`, else `g++`, on the PATH."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def functional_gradient(
    loss: Loss[Batch], parameters: Tensor, batch: Batch, scalars: Numbers
) -> tuple[Tensor, Tensor, Numbers]:
    """The loss's gradient [P], value and metrics, in the form that can be compiled as a whole."""
    gradient, (value, metrics) = torch.func.grad_and_value(loss, has_aux=True)(
        parameters, batch, scalars
    )
    return gradient, value, dict(metrics)


def compiled(step: GradientStep[Batch]) -> Step[Batch]:
    """The step as one function of torch.compile, built when it is first called.

    With a transform that cannot be traced: its gradients and its optimisers' steps, each as one.
    """
    functional_step = replace(
        step,
        learners=tuple(each._replace(gradient=functional_gradient) for each in step.learners),
    )

    def whole_step(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        return functional_step(batch, index, scalars)

    fast_step: Step[Batch] = (
        _compiled(whole_step)
        if step.is_traceable
        else _in_halves(functional_step, lambda function, _written: _compiled(function))
    )
    shape: Shape | None = None

    def run(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        nonlocal shape
        rows = _shape(named_tensors(batch), index)
        shape = shape or rows
        if rows != shape:  # compiling takes longer than it saves
            return step(batch, index, scalars)
        with torch.inference_mode():
            return fast_step(batch, index, scalars)

    return run


def captured(step: GradientStep[Batch], device: torch.device) -> Step[Batch]:
    """The step as a CUDA graph on this GPU, recorded when it is first called.

    A batch of another shape gets a graph of its own; after `MOST_GRAPHS` of them it runs eagerly,
    which gives the same numbers. A call raises `UnableToRun` if the step cannot be captured;
    then nothing has changed: neither what the step writes, nor the GPU's random numbers.

    With a transform that cannot be traced: its gradients and its optimisers' steps, each as one.
    """
    if not step.is_traceable:
        return _captured_halves(step, device)
    recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, dict[str, Tensor], StepResult]] = {}

    def run(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        columns = named_tensors(batch)
        shape = _shape(columns, index)
        if shape not in recorded:
            if len(recorded) == MOST_GRAPHS:
                return step(batch, index, scalars)
            static = mapped(
                lambda column: (column if index is None else column[index]).clone(), batch
            )
            graph, result = _recorded(lambda: step(static, None, scalars), step.written, device)
            recorded[shape] = graph, named_tensors(static), result
        graph, buffers, result = recorded[shape]
        for name, buffer in buffers.items():
            if index is None:
                buffer.copy_(columns[name], non_blocking=True)
            else:
                torch.index_select(columns[name], 0, index, out=buffer)
        graph.replay()
        return result._replace(metrics=result.metrics.clone())  # the next replay writes to it again

    return run


def _compiled(function: Function) -> Function:
    """A function as one of torch.compile, built when it is first called.

    Args:
        function: A function defined inside another one; its tensors keep their shapes.
    """
    # Every compiled step needs a code object of its own: torch keeps what it compiled by code
    # object, and with most checks off (below) would take one engine's step for another's.
    function.__code__ = function.__code__.replace()
    with _no_garbage_collection():
        fast = torch.compile(
            function,
            fullgraph=True,
            dynamic=False,
            options={**COMPILER_OPTIONS, **_products(), "guard_filter_fn": _checks_kept},
        )
    is_new = True

    def run(*arguments: Any) -> Any:
        nonlocal is_new
        try:
            with _no_garbage_collection() if is_new else nullcontext():
                try:
                    result = fast(*arguments)
                except torch._dynamo.exc.TorchDynamoException as error:
                    if CPP_ERROR not in str(error) and not _removed_unreadable(error):
                        raise
                    result = fast(*arguments)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = " ".join(str(error).split("\n", 2)[:2]).strip()
            raise ConfigurationError(
                f"this step cannot be compiled: {reason}; change the network, or set "
                "update_mode='eager'"
            ) from error
        if is_new:
            is_new = False
            # The compiler leaves so many objects behind that searching them for garbage again and
            # again shows in the time of a step.
            gc.collect()
            gc.freeze()
        return result

    return run


def _in_halves(step: GradientStep[Batch], faster: Faster) -> GradientStep[Batch]:
    """The step with faster gradients and faster steps of optimisers; all between them is eager.

    Args:
        step: The step.
        faster: Makes a function faster, given the tensors that it writes to.
    """

    def halves(each: TrainedObjective[Batch]) -> TrainedObjective[Batch]:
        objective, optimizer, _, gradient_of = each
        parameters = objective.network.online

        def gradient_half(batch: Batch, scalars: Numbers) -> tuple[Tensor, Tensor, Numbers]:
            return gradient_of(objective.loss, parameters, batch, scalars)

        def optimiser_half(gradient: Tensor, learning_rate: Tensor) -> None:
            optimizer.step(gradient, learning_rate)

        fast_gradient = faster(gradient_half, ())

        def fast(
            _loss: Loss[Batch], _parameters: Tensor, batch: Batch, scalars: Numbers
        ) -> tuple[Tensor, Tensor, Numbers]:
            gradient, loss, metrics = fast_gradient(batch, scalars)
            return gradient, loss, {**metrics}  # the transforms add theirs

        return each._replace(
            gradient=fast,
            optimizer=_OptimiserHalf(optimizer, faster(optimiser_half, optimizer.tensors())),
        )

    return replace(step, learners=tuple(halves(each) for each in step.learners))


class _OptimiserHalf:
    """An optimiser whose step is faster."""

    def __init__(self, optimizer: Optimizer, step: Callable[[Tensor, Tensor], None]) -> None:
        self.step = step
        self.tensors = optimizer.tensors
        self.mean_gradient = optimizer.mean_gradient
        self.state_dict = optimizer.state_dict
        self.load_state_dict = optimizer.load_state_dict


def _captured_halves(step: GradientStep[Batch], device: torch.device) -> Step[Batch]:
    """The step whose gradients and optimisers' steps are CUDA graphs; see `captured`."""
    halves = _in_halves(step, partial(_captured, device=device))
    known: set[Shape] = set()

    def run(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        shape = _shape(named_tensors(batch), index)
        if shape in known:
            return halves(batch, index, scalars)
        kept = [(tensor, tensor.clone()) for tensor in step.written]
        try:
            result = halves(batch, index, scalars)
        except UnableToRun:  # of a later half, maybe
            for tensor, value in kept:
                tensor.copy_(value)
            raise
        known.add(shape)
        return result

    return run


def _captured(function: Function, written: Sequence[Tensor], *, device: torch.device) -> Function:
    """A function of tensors, or dicts and NamedTuples of them, as CUDA graphs; see `captured`.

    Its result is valid until the next call.
    """
    recorded: dict[tuple[torch.Size, ...], tuple[torch.cuda.CUDAGraph, list[Tensor], Any]] = {}

    def run(*arguments: Any) -> Any:
        given = _tensors(arguments)
        shape = tuple(each.shape for each in given)
        if shape not in recorded:
            if len(recorded) == MOST_GRAPHS:
                return function(*arguments)
            static = [mapped(torch.clone, each) for each in arguments]
            graph, result = _recorded(lambda: function(*static), written, device)
            recorded[shape] = graph, _tensors(static), result
        graph, buffers, result = recorded[shape]
        for buffer, tensor in zip(buffers, given, strict=True):
            buffer.copy_(tensor, non_blocking=True)
        graph.replay()
        return result

    return run


def _tensors(arguments: Iterable[object]) -> list[Tensor]:
    """All tensors of the arguments, in their order."""
    return [tensor for each in arguments for tensor in named_tensors(each).values()]


def _shape(columns: dict[str, Tensor], index: Tensor | None) -> Shape:
    return tuple(map(len, columns.values())) if index is None else len(index)


def _recorded(
    function: Callable[[], Result], written: Sequence[Tensor], device: torch.device
) -> tuple[torch.cuda.CUDAGraph, Result]:
    """The graph of a function, and the tensors it writes its result to.

    The calls made for it are undone. One of them runs with waiting for the GPU forbidden, which
    finds nearly all that cannot be captured: a capture that fails leaves traces in torch.

    Args:
        function: What to capture; it reads tensors that stay where they are.
        written: Every tensor that it writes to.
        device: The GPU.
    """
    kept = [(tensor, tensor.clone()) for tensor in written]
    rng_state = torch.cuda.get_rng_state(device)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.device(device):  # streams are made on the current device
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch has no types
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(CAPTURE_WARM_UP - 1):
                    function()
                with _waiting_forbidden():
                    function()
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
                result = _capture(graph, function)
    except RuntimeError as error:  # all of torch's own
        _abandoned.append(graph)
        raise UnableToRun(f"cannot be captured: {_cause(error)}") from error
    finally:
        torch.cuda.synchronize(device)
        for tensor, value in kept:
            tensor.copy_(value)
        torch.cuda.set_rng_state(rng_state, device)
    return graph, result


def _capture(graph: torch.cuda.CUDAGraph, function: Callable[[], Result]) -> Result:
    """Record a function on the current stream; the stream no longer captures, whatever happens.

    Unlike `torch.cuda.graph`, which leaves the stream as the current one where ending fails. Other
    threads may use the GPU meanwhile.
    """
    graph.capture_begin(capture_error_mode="thread_local")
    has_ended = False
    try:
        result = function()
        has_ended = True
        graph.capture_end()
    except BaseException:
        if not has_ended:
            with suppress(RuntimeError):  # the function's own error is more specific
                graph.capture_end()
        # The generator still counts as captured, and would refuse to draw: give it another state.
        number = torch.cuda.current_device()
        fresh = torch.Generator(torch.device("cuda", number))
        torch.cuda.default_generators[number].graphsafe_set_state(fresh)
        raise
    return result


@contextmanager
def _waiting_forbidden() -> Iterator[None]:
    """Make it an error to wait for the GPU, as reading one of its numbers does."""
    before = torch.cuda.get_sync_debug_mode()
    _set_sync_debug_mode("error")
    try:
        yield
    finally:
        _set_sync_debug_mode(before)


def _set_sync_debug_mode(mode: int | str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # once, torch calls this mode a prototype
        torch.cuda.set_sync_debug_mode(mode)


def _cause(error: Exception) -> str:
    """The first line of an error of torch's, and the line of Python that led to it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return f"{text} (in {place.name}, {Path(place.filename).name}:{place.lineno})"


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep Python from searching for garbage, which is a tenth of the time of compiling."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _products() -> dict[str, Callable[..., object]]:
    """The compiler's setting for matrix products by oneDNN, where that gains."""
    from coach_rl.extensions.update_modes.matrix_products import OneDNNProducts, gained_here

    return {"post_grad_custom_post_pass": OneDNNProducts()} if gained_here() else {}


def _removed_unreadable(error: Exception) -> bool:
    """Remove a compiled file that cannot be loaded from the compiler's cache; False for none.

    One that was being written while the machine went down, or its disk was full, stays there cut
    off, and would stop every run of this step.
    """
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    cause = getattr(error, "inner_exception", None)
    path = Path(getattr(cause, "path", None) or str(cause).partition(":")[0])
    is_cached = isinstance(cause, ImportError | OSError) and Path(cache_dir()) in path.parents
    if is_cached:
        path.unlink(missing_ok=True)
    return is_cached


class _Check(Protocol):
    """A check of the compiler's."""

    name: str


def _checks_kept(checks: Sequence[_Check]) -> list[bool]:
    """Select the compiler's checks that stay in front of every call of a compiled step.

    Kept are those of the arguments, of torch's global state, and of everything that a loss reads
    elsewhere except networks: when it changes, the step is recompiled. Dropped are those of
    modules, optimisers and torch's own functions: nineteen in twenty, and up to a third of the time
    of a PPO step.
    """

    def is_kept(check: _Check) -> bool:
        is_argument = check.name.replace(".", "[").partition("[")[0] in ARGUMENTS
        is_network = any(part in check.name for part in INSIDE_A_MODULE)
        return is_argument or (".loss" in check.name and not is_network)

    return [is_kept(check) for check in checks]
