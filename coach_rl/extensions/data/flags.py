"""The flag that records an evaluation as a data set. Light, like `cli.parser`."""

from pathlib import Path

from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag

FOR_RUNS = group(
    "where and how it runs",
    Flag(
        "--record FILE",
        "write the episodes as a data set, FILE.npz, to learn from",
        Path,
        sets="coach_rl:RecordingParameters.file",
    ),
    of="evaluate",
)
"""The flags of commands about one run."""
