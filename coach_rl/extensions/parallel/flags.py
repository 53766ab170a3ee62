"""The flag of runs in several processes. Light, like `cli.parser`."""

from collections.abc import Mapping

from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag


def joint(callbacks: tuple[object, ...]) -> Mapping[str, object]:
    """The parameters of such a run: its callbacks, and no checkpoints by the clock."""
    return {"callbacks": callbacks, "checkpoints.lost_at_most_seconds": None}


FOR_RUNS = group(
    "changing the experiment",
    Flag(
        "--parallel",
        "in each process that torchrun starts: a run of its own, all with averaged gradients",
        sets=joint,
        of="train resume",
    ),
)
"""The flags of commands about one run."""
