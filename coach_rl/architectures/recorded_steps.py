"""Faster ways to run an eager gradient step: compiled for the CPU, or captured as a CUDA graph.

Nothing here changes what a step computes. All ways are equal to rounding.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

import torch
from torch import Tensor

from coach_rl.architectures.batch import Batch, mapped, named_tensors
from coach_rl.architectures.gradient_step import GradientStep, Loss, Numbers, Step, StepResult
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.update_modes import UpdateMode, cannot_run

COMPILE_REPAID_AFTER = 40_000
"""Updates after which compiling has repaid itself: about 25 s at 0.6 ms saved per update."""
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

A terminal sends Ctrl-C to the compiler too, and a run that is asked to stop finishes its step: it
compiles once more.
"""
INSIDE_A_MODULE = (".module", "._modules", "._parameters", "._buffers")
"""Part of the compiler's name of a value that belongs to a network."""
ARGUMENTS = ("", "batch", "index", "scalars")
"""Beginning of the compiler's name of a value that is an argument; nothing: global state."""
CAPTURE_WARM_UP = 3
"""Steps run, and undone, before a CUDA graph is recorded: libraries allocate in the first ones."""


def resolved_mode(
    mode: UpdateMode, device: torch.device, *, planned_updates: int, repaid_after: int
) -> Literal["eager", "compiled", "captured"]:
    """The mode itself, or what `auto` stands for; ParameterError if it cannot run on the device.

    `auto` compiles on the CPU where a C++ compiler is present and the planned updates repay the 10
    to 25 seconds that it takes; it never captures.

    Args:
        mode: The mode asked for.
        device: The device of the networks.
        planned_updates: Gradient steps that the run will take.
        repaid_after: Gradient steps after which compiling has repaid itself.
    """
    if mode == "auto":
        can_compile = device.type == "cpu" and cannot_run("compiled", "cpu") is None
        return "compiled" if can_compile and planned_updates >= repaid_after else "eager"
    reason = cannot_run(mode, str(device))
    others = "'auto', 'captured' or 'eager'" if device.type == "cuda" else "'auto' or 'eager'"
    require(reason is None, f"update_mode='{mode}' {reason}; use {others}")
    return mode


def functional_gradient(
    loss: Loss[Batch], parameters: Tensor, batch: Batch, scalars: Numbers
) -> tuple[Tensor, Tensor, Numbers]:
    """The loss's gradient [P], value and metrics, in the form that can be compiled as a whole."""
    gradient, (value, metrics) = torch.func.grad_and_value(loss, has_aux=True)(
        parameters, batch, scalars
    )
    return gradient, value, dict(metrics)


def compiled(step: GradientStep[Batch]) -> Step[Batch]:
    """The step as one function of torch.compile, built when it is first called."""
    functional_step = replace(step, gradient=functional_gradient)

    def whole_step(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        return functional_step(batch, index, scalars)

    # Every compiled step needs a code object of its own: torch keeps what it compiled by code
    # object, and with most checks off (below) would take one engine's step for another's.
    whole_step.__code__ = whole_step.__code__.replace()
    with _no_garbage_collection():
        fast_step = torch.compile(
            whole_step,
            fullgraph=True,
            dynamic=False,
            options={**COMPILER_OPTIONS, **_products(), "guard_filter_fn": _checks_kept},
        )
    is_new = True

    def run(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        nonlocal is_new
        try:
            with torch.inference_mode(), _no_garbage_collection() if is_new else nullcontext():
                try:
                    result = fast_step(batch, index, scalars)
                except torch._dynamo.exc.TorchDynamoException as error:
                    if CPP_ERROR not in str(error) and not _removed_unreadable(error):
                        raise
                    result = fast_step(batch, index, scalars)
        except torch._dynamo.exc.TorchDynamoException as error:
            raise ConfigurationError(
                f"this step cannot be compiled: {str(error).strip().splitlines()[0]}; change the "
                "network, or set update_mode='eager'"
            ) from error
        if is_new:
            is_new = False
            # The compiler leaves so many objects behind that searching them for garbage again and
            # again shows in the time of a step.
            gc.collect()
            gc.freeze()
        return result

    return run


def captured(step: GradientStep[Batch], device: torch.device) -> Step[Batch]:
    """The step as a CUDA graph on this GPU, recorded when it is first called."""
    graph = torch.cuda.CUDAGraph()
    recorded: list[tuple[Batch, StepResult]] = []  # what the graph reads and what it writes

    def record(static: Batch, scalars: Numbers) -> StepResult:
        kept = [(tensor, tensor.clone()) for tensor in step.written]
        with torch.cuda.device(device):  # streams are made on the current device
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch has no types
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(CAPTURE_WARM_UP):
                    step(static, None, scalars)
            torch.cuda.current_stream().wait_stream(side)
            with torch.cuda.graph(graph, stream=side):
                result = step(static, None, scalars)
        for tensor, value in kept:
            tensor.copy_(value)
        return result

    def run(batch: Batch, index: Tensor | None, scalars: Numbers) -> StepResult:
        if not recorded:
            static = mapped(
                lambda column: (column if index is None else column[index]).clone(), batch
            )
            recorded.append((static, record(static, scalars)))
        static, result = recorded[0]
        columns = named_tensors(batch)
        for name, buffer in named_tensors(static).items():
            if index is None:
                buffer.copy_(columns[name], non_blocking=True)
            else:
                torch.index_select(columns[name], 0, index, out=buffer)
        graph.replay()
        return result._replace(metrics=result.metrics.clone())  # the next replay writes to it again

    return run


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
    from coach_rl.architectures.matrix_products import OneDNNProducts, gained_here

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
    elsewhere except networks: when it changes, the step is compiled anew. Dropped are those of
    modules, optimisers and torch's own functions: nineteen in twenty, and up to a third of the time
    of a PPO step.
    """

    def is_kept(check: _Check) -> bool:
        is_argument = check.name.replace(".", "[").partition("[")[0] in ARGUMENTS
        is_network = any(part in check.name for part in INSIDE_A_MODULE)
        return is_argument or (".loss" in check.name and not is_network)

    return [is_kept(check) for check in checks]
