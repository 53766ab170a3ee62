"""The flags of workers. Light, like `cli.parser`."""

from collections.abc import Mapping

from coach_rl.cli import values
from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag


class _Source:
    """The workers as the source of a run, as `Flag.sets` takes it: a function with a path."""

    def __call__(self, workers: int) -> Mapping[str, object]:
        """The parameters that a number of workers stands for."""
        # Not at the top: it imports torch, and --help needs it not.
        from coach_rl.configuration.overrides import OfKind

        return {"source": OfKind("CollectionParameters", {"workers": workers})}

    def __str__(self) -> str:
        """The path of what it sets, by which errors find the flag."""
        return "parameters.source"


FOR_RUNS = (
    *group(
        "changing the experiment",
        Flag(
            "--workers N",
            "let N worker processes act and step the environments, a share of them each; not with "
            "--seeds",
            values.positive,
            sets=_Source(),
            added_by="a world to act in from the start (runs from data have no workers)",
            of="train",
        ),
    ),
    *group(
        "where and how it runs",
        Flag(
            "--on PLACE",
            "where the runs of --seeds, or the --workers of one run, are: local (default), "
            "ray[:ADDRESS]; runs also on slurm[:PARTITION]",
            sets="source.on",
            added_by="--workers or --seeds",
            of="train begun resume",
        ),
        Flag(
            "--background_evaluation",
            "evaluate in a process of its own; training doesn't wait for the results",
            sets="coach_rl:BackgroundEvaluation",
            of="train resume fork repeat",
        ),
    ),
)
"""The flags of commands about one run."""
