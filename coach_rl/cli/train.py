"""The command that trains a preset."""

from collections.abc import Mapping
from contextlib import closing

from coach_rl.cli.flag_overrides import overrides_of, tracked
from coach_rl.cli.run_report import (
    SaysHowToResume,
    audience_of,
    conclude,
    console_sink,
    video_parameters,
)
from coach_rl.cli.settings import Output, Train
from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.inspection import parse_inspections
from coach_rl.core.process_group import ProcessGroup
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.data_parallel import follow_experiment
from coach_rl.sessions.opening import inspected
from coach_rl.sessions.session import DEFAULT_ROOT, run_experiment
from coach_rl.sessions.settings import RunSettings


def train_command(train: Train, command: tuple[str, ...], group: ProcessGroup) -> int:
    """Train a preset in a new run; the exit code."""
    preset = load_preset(find_preset(train.preset))
    overrides = tracked(
        overrides_of(train.changes, preset, train.length, train.keeping, train.collecting),
        train.tracker,
    )
    graph_manager = configured(preset, overrides, train.inspect)
    given = {name: value for name, value in overrides.items() if name in preset.panel}
    task = Runtime(
        seed=train.seed,
        device=train.device,
        matmul_precision=train.matmul_precision,
        threads=train.threads,
    )
    going_on = SaysHowToResume(group)
    if group.rank > 0:
        with going_on:
            follow_experiment(
                graph_manager,
                task,
                group=group,
                on_start=going_on.note,
                profile=train.output.profile,
            )
        return 0
    with going_on, closing(console_sink(train.output)) as console:
        result = run_experiment(
            graph_manager,
            task,
            name=train.experiment_name or preset.reference.name,
            root=train.experiment_path or DEFAULT_ROOT,
            origin=Origin(preset=preset, panel=preset.panel_values(given), command=command),
            settings=run_settings(train.output),
            audience=audience_of(train.output, console, going_on),
            group=group,
        )
    return conclude(train.output, result, group)


def configured(
    preset: Preset, overrides: Mapping[str, object], inspections: str | None
) -> GraphManager:
    """A preset's experiment with overrides, and with inspections instead of its own."""
    graph_manager = preset.configure(overrides)
    if inspections is None:
        return graph_manager
    return inspected(graph_manager, parse_inspections(inspections))


def run_settings(output: Output) -> RunSettings:
    """The settings of a run, by the flags of its files and films."""
    return RunSettings(
        tensorboard=not output.no_tensorboard,
        histograms=None if output.histograms is None else EnvironmentSteps(output.histograms),
        evaluate_aside=output.evaluate_aside,
        profile=output.profile,
        video=video_parameters(output.film),
    )
