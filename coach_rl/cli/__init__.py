"""The `coach` command: reads flags, calls the experiment room, prints what came of it.

May import core, experiment, graph_managers and telemetry. Start with `main`; `settings` is what
each command is given, `arguments` how the command line is read, `flags` which flags there are,
`commands` what is done, `train` how runs are made, `run_report` what they say, `describe` how a
preset is shown.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.cli.arguments import parse_arguments
    from coach_rl.cli.commands import run_command
    from coach_rl.cli.describe import describe_preset
    from coach_rl.cli.settings import (
        Changes,
        Describe,
        Evaluate,
        EvaluateUntrained,
        Film,
        ListPresets,
        Output,
        Resume,
        Settings,
        Train,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Changes", "Describe", "Evaluate", "EvaluateUntrained", "Film", "ListPresets", "Output",
    "Resume", "Settings", "Train", "describe_preset", "parse_arguments", "run_command",
]  # fmt: skip
