"""The settings and services of a run that its parts share, handed down whole.

    graph_manager.create_graph(Runtime(seed=1, device="cpu", threads=2))

Seed, device, precision and threads are recorded in a run's manifest. The rest belongs to the
running process: callbacks, channels.
"""

from collections.abc import Callable
from dataclasses import field, fields, replace
from typing import Any, Literal, Self

from coach_rl.core.parameter_classes import parameter_class, with_values
from coach_rl.core.parts import walk
from coach_rl.core.ranges import NonNegative, Positive, Threads
from coach_rl.core.scratch import Scratch
from coach_rl.core.seeding import integer_seed
from coach_rl.core.signals import SILENT, Signals

OnActivity = Callable[[str], None]
"""Called with the name of a slow activity before it begins, and with an empty text after it."""

FIRST_STEP = " the gradient step of "
"""Part of the name of the slow work before the first gradient step of an agent."""


LIVE = "live"
"""Under this name the metadata of a field that belongs to the running process is true: such a field
is neither recorded nor compared."""


def ignore_activity(_activity: str) -> None:
    """Ignore the activity."""


@parameter_class
class DivergenceParameters:
    """The response to a gradient step with a loss, gradient or parameter that is not finite."""

    response: Literal["stop", "skip", "roll_back"] = "stop"
    """`stop` ends the run with a diagnosis. `skip` leaves networks, optimisers and targets as they
    were before the step. `roll_back` goes back to the last checkpoint and continues with new random
    numbers; only runs that write checkpoints can, others stop."""
    most_skipped: Positive[int] = 100
    """Steps skipped in a row after which the run stops all the same (response `skip`)."""
    most_roll_backs: Positive[int] = 3
    """Times a run is rolled back before it stops all the same (response `roll_back`)."""

    @property
    def skips(self) -> bool:
        """True if such a step is undone and the next one taken."""
        return self.response == "skip"


STOP = DivergenceParameters()
"""The default: a run stops."""


MatmulPrecision = Literal["highest", "high", "medium"]


def _live(default: object) -> Any:
    return field(default=default, metadata={LIVE: True}, compare=False)


@parameter_class
class Runtime:
    """Seed, device and services of a run; each part gets the whole, with its own seed."""

    seed: NonNegative[int] = 0
    """Seed of every random generator of the run, or of the part that is built; 0 or more."""
    device: str = "auto"
    """Device of the networks: auto (a GPU if there is one), cpu, cuda or cuda:N."""
    matmul_precision: MatmulPrecision = "highest"
    """Precision of float32 matrix products, in PyTorch's words; sums are always float32.

    `highest` takes all 24 bits of the factors. `high` may take TF32's 11 on GPUs. `medium` may take
    bfloat16's 8, on processors and GPUs that multiply those faster; elsewhere it is `highest`.
    What that costs in score: benchmarks/results/off_policy_mujoco.md.
    """
    threads: Threads | None = None
    """Threads of one tensor operation on the CPU; None: those of the experiment. With another
    number, sums of many elements differ in their last digits."""
    on_activity: OnActivity = _live(ignore_activity)
    """Called with the name of slow work (compiling, evaluating), and with "" when it is over."""
    signals: Signals = _live(SILENT)
    """Channel for the signals of the part that is built; see docs/record_stream.md."""
    divergence: DivergenceParameters = _live(STOP)
    """The response to losses, gradients and parameters that are not finite."""
    scratch: Scratch | None = _live(None)
    """Folders for large files of parts; None: temporary ones."""
    acts_only: bool = _live(False)
    """If True, agents act in a process that learns nothing, and need no memory."""

    def recorded(self) -> Self:
        """The same without what belongs to this process; can be sent to another one."""
        live = {name: type(self).__dataclass_fields__[name].default for name in _LIVE_FIELDS}
        return replace(self, **live)

    def for_part(self, *path: str, signals: str = "") -> Self:
        """The runtime of a part, with a seed of its own.

        Args:
            path: The part's place, from which its seed is derived.
            signals: The part's name in signals; empty: that of the whole.
        """
        channel = self.signals.of(signals) if signals else self.signals
        return with_values(self, seed=integer_seed(self.seed, *path), signals=channel)


USUAL = Runtime()
"""The default runtime of an experiment."""
ON_CPU = Runtime(device="cpu")
"""The default runtime of parts that are built on their own."""
_LIVE_FIELDS = [each.name for each in fields(Runtime) if LIVE in each.metadata]


def update_modes(agent: object) -> dict[str, str]:
    """Modes of an agent's gradient steps, by its name, and by that of a part with own steps.

    The mode, e.g. `captured`, followed by the reason in brackets where `auto` stands for another
    one on this device.
    """
    modes = {}
    for part in walk(agent):
        if isinstance(mode := getattr(part.value, "updates", None), str):
            of = part.name.removesuffix("engine").rstrip("_")
            modes[f"{part.agent.name}/{of}".rstrip("/")] = mode
    return modes
