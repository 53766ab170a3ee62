"""The settings and services of a run that its parts share, handed down whole.

    graph_manager.create_graph(Runtime(seed=1, device="cpu", threads=2))

Seed, device, precision and threads are recorded in a run's manifest. The rest belongs to the
running process: the processes that train together, callbacks, channels.
"""

from dataclasses import field, fields, replace
from typing import Any, Literal, Self

from coach_rl.core.activity import OnActivity, ignore_activity
from coach_rl.core.divergence import STOP, DivergenceParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.process_group import ONE_PROCESS, ProcessGroup
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.seeding import integer_seed
from coach_rl.core.signals import SILENT, Signals

MatmulPrecision = Literal["highest", "high", "medium"]

LIVE = "live"
"""Under this name the metadata of a field that belongs to the running process is true: such a field
is neither recorded nor compared."""


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
    threads: Positive[int] | None = None
    """Threads of one tensor operation on the CPU; None: those of the experiment. With another
    number, sums of many elements differ in their last digits."""
    group: ProcessGroup = _live(ONE_PROCESS)
    """The processes that train the experiment together, each on its share of rows and batches."""
    on_activity: OnActivity = _live(ignore_activity)
    """Called with the name of slow work (compiling, evaluating), and with "" when it is over."""
    signals: Signals = _live(SILENT)
    """Channel for the signals of the part that is built; see docs/record_stream.md."""
    divergence: DivergenceParameters = _live(STOP)
    """The response to losses, gradients and parameters that are not finite."""
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
        return replace(self, seed=integer_seed(self.seed, *path), signals=channel)


ON_CPU = Runtime(device="cpu")
"""The default runtime of parts that are built on their own."""
_LIVE_FIELDS = [each.name for each in fields(Runtime) if LIVE in each.metadata]
