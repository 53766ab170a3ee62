"""The flags about work in other processes. Light, like `cli.parser`."""

from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag

FOR_RUNS = group(
    "where and how it runs",
    Flag(
        "--background_evaluation",
        "evaluate in a process of its own; training doesn't wait for the results",
        sets="coach_rl:BackgroundEvaluation",
    ),
    of="train resume fork repeat",
)
