"""Experiments: presets, overrides, run folders, checkpoints, and the runner of a graph manager.

May import core, telemetry and graph_managers. Start with `runner`, `resuming` and `evaluation`;
`presets` and `preset_file` lead from a name to a graph manager, `run_folder`, `manifest` and
`checkpoint` to the disk.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
    from coach_rl.sessions.fork import fork_experiment
    from coach_rl.sessions.loaded_levels import load_levels
    from coach_rl.runs.manifest import Origin
    from coach_rl.configuration.override_text import parse_overrides
    from coach_rl.configuration.overrides import apply_overrides
    from coach_rl.configuration.panel import PanelArgument
    from coach_rl.configuration.preset_file import Preset, load_preset
    from coach_rl.configuration.presets import (
        PresetReference,
        describe_presets,
        find_preset,
        shipped_presets,
    )
    from coach_rl.sessions.resuming import resume_experiment
    from coach_rl.runs.folder import RunFolder
    from coach_rl.sessions.settings import Audience, RunResult, RunSettings
    from coach_rl.sessions.runner import run_experiment
    from coach_rl.sessions.trained_agent import TrainedAgent, load
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Audience", "Origin", "PanelArgument", "Preset", "PresetReference", "RunFolder", "RunResult",
    "RunSettings", "TrainedAgent", "apply_overrides", "describe_presets", "evaluate_run",
    "evaluate_untrained", "find_preset", "fork_experiment", "load", "load_levels", "load_preset",
    "parse_overrides", "resume_experiment", "run_experiment", "shipped_presets",
]  # fmt: skip
