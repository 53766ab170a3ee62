"""Experiments: presets, overrides, run folders, checkpoints, and the runner of a graph manager.

May import core, telemetry and graph_managers. Start with `runner`, `resuming` and `evaluation`;
`presets` and `preset_file` lead from a name to a graph manager, `run_folder`, `manifest` and
`checkpoint` to the disk.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.experiment.evaluation import evaluate_run, evaluate_untrained
    from coach_rl.experiment.fork import fork_experiment
    from coach_rl.experiment.loaded_levels import load_levels
    from coach_rl.experiment.manifest import Origin
    from coach_rl.experiment.override_text import parse_overrides
    from coach_rl.experiment.overrides import apply_overrides
    from coach_rl.experiment.panel import PanelArgument
    from coach_rl.experiment.preset_file import Preset, load_preset
    from coach_rl.experiment.presets import (
        PresetReference,
        describe_presets,
        find_preset,
        shipped_presets,
    )
    from coach_rl.experiment.resuming import resume_experiment
    from coach_rl.experiment.run_folder import RunFolder
    from coach_rl.experiment.run_settings import Audience, RunResult, RunSettings
    from coach_rl.experiment.runner import run_experiment
    from coach_rl.experiment.trained_agent import TrainedAgent, load
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Audience", "Origin", "PanelArgument", "Preset", "PresetReference", "RunFolder", "RunResult",
    "RunSettings", "TrainedAgent", "apply_overrides", "describe_presets", "evaluate_run",
    "evaluate_untrained", "find_preset", "fork_experiment", "load", "load_levels", "load_preset",
    "parse_overrides", "resume_experiment", "run_experiment", "shipped_presets",
]  # fmt: skip
