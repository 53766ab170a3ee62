"""Experiments: presets, overrides, run folders, checkpoints, and the runner of a graph manager.

May import core, telemetry and graph_managers. Start with `runner` (run, resume) and `evaluation`;
`presets` and `preset_file` lead from a name to a graph manager, `run_folder` and `checkpoint` to
the disk. Names are imported from their modules: `presets` must answer without waiting for torch,
which the others need.
"""
