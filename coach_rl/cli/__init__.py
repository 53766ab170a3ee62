"""The `coach` command: reads flags, calls the experiment room, prints what came of it.

May import core, experiment, graph_managers and telemetry. Start with `main`; `arguments` is what
the command line understands, `commands` what it does, `describe` how a preset is shown.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.cli.arguments import Arguments, parse_arguments
    from coach_rl.cli.commands import run_command
    from coach_rl.cli.describe import describe_preset
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Arguments", "describe_preset", "parse_arguments", "run_command"]
