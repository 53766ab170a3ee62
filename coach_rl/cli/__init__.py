"""The `coach` command: reads flags, calls the experiment room, prints what came of it.

May import core, experiment, graph_managers and telemetry. Start with `main`; `arguments` is what
the command line understands, `commands` what it does, `describe` how a preset is shown.
"""
