"""Evaluating and playing an experiment apart from its training: at its end, later, or before.

evaluation, file = evaluate_run(Path("experiments/cartpole/..."), episodes=EnvironmentEpisodes(9))
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypedDict, Unpack

import torch

from coach_rl.configuration.file_writing import make_folder, unused
from coach_rl.configuration.overrides import format_overrides, overrides_json
from coach_rl.configuration.paths_of_fields import paths_named
from coach_rl.configuration.strict_json import Json, plain_json, write_json
from coach_rl.core.errors import (
    ConfigurationError,
    ParameterError,
    SpaceError,
    exits_as_errors,
    require,
    warn,
)
from coach_rl.core.log_records import Evaluation
from coach_rl.core.runtime import Runtime
from coach_rl.core.shown_text import shown_level
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.core.typed_values import describe_value
from coach_rl.graph_managers.callbacks import Callback, CallbackParameters
from coach_rl.graph_managers.graph import MAX_EVALUATION_ENVS
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import torch_settings, with_threads
from coach_rl.graph_managers.watcher import EvaluationWatcher
from coach_rl.runs.manifest import now
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.opening import (
    OpenedRun,
    Opening,
    OpeningArguments,
    fitting,
    known_spaces,
    open_run,
    with_overrides,
)
from coach_rl.sessions.run_parts import Written
from coach_rl.sessions.settings import FINAL_EPISODES, RunPartParameters, RunSettings


class GraphArguments(TypedDict, total=False):
    """Keyword arguments of `GraphManager.create_graph`."""

    training: bool
    evaluation_envs: int | None
    callbacks: Sequence[Callback | CallbackParameters]
    watchers: Sequence[EvaluationWatcher]
    begins: bool


@contextmanager
def live_graph(
    graph_manager: GraphManager, runtime: Runtime, **arguments: Unpack[GraphArguments]
) -> Iterator[None]:
    """The graph is built inside and closed afterwards, whatever happens.

    Args:
        graph_manager: Whose graph.
        runtime: The run's; threads and precision hold while inside.
        **arguments: As of `GraphManager.create_graph`.

    Raises:
        ConfigurationError: The graph cannot be built.
    """
    require_graph_manager(graph_manager)
    runtime = with_threads(runtime, graph_manager.parameters.threads)
    with torch_settings(runtime), exits_as_errors():
        try:
            with _memory_errors_named(graph_manager), paths_named(graph_manager.parameters):
                graph_manager.create_graph(runtime, **arguments)
            yield
        finally:
            graph_manager.close()


def require_graph_manager(value: object) -> None:
    """Raise `ConfigurationError` for what is no graph manager, such as a preset's function."""
    if not isinstance(value, GraphManager):
        raise ParameterError(
            f"an experiment is a GraphManager, got {describe_value(value)}; call the preset's "
            "function, or write load_preset(find_preset(NAME)).build()"
        )


def evaluate_run(
    run: Path | Opening,
    *,
    episodes: EnvironmentEpisodes | int = FINAL_EPISODES,
    overrides: Mapping[str, object] | None = None,
    num_envs: int | None = None,
    sampling: bool = False,
    seed: int | None = None,
    parts: Sequence[RunPartParameters] = (),
    on_written: Callable[[Written], None] = lambda _: None,
    **opening: Unpack[OpeningArguments],
) -> tuple[Evaluation, Path | None]:
    """Evaluate a run's last checkpoint, or the one named, and change nothing in the run.

    Agents and their filters are loaded, and nothing of the environments they were trained in, so
    it does not matter whether those can still be built or led to where they stood.

    Args:
        run: A run's folder, one of its checkpoints, or `RUN@STEP`.
        episodes: How many.
        overrides: Changes of the environment to evaluate in, by path (`environment.level`); None
            for that of the run's evaluations.
        num_envs: Environments in parallel. None: as many as the run's own evaluations have, so
            that up to 20 episodes repeat its final evaluation, and up to 16 for more episodes.
        sampling: Whether agents explore as they did in training, instead of acting greedily.
        seed: Of the episodes; None takes that of the run's final evaluation.
        parts: What takes part in the evaluation, such as a film of it.
        on_written: Called with each file that a part has written.
        **opening: `device`, `threads`, `last_good` and `trust` of `Opening`.

    Returns:
        The evaluation, and the file in the run's folder that holds it; None where the folder
        cannot be written to, with a `CoachWarning`.

    Raises:
        SpaceError: The environment's spaces are not those the agents know.
        ConfigurationError: There is no such run, or a change cannot be made.
        CheckpointError: A file of the run is damaged, or it has no checkpoint yet.
    """
    episodes = EnvironmentEpisodes(episodes) if isinstance(episodes, int) else episodes
    require(episodes.count > 0, f"episodes must be 1 or more, got {episodes}")
    settings = RunSettings(parts=tuple(parts))
    for each in parts:
        each.check(settings)
    built = [each.build(settings) for each in parts]
    watchers = [each for part in built for each in part.watchers]
    if num_envs is None and episodes > FINAL_EPISODES:
        num_envs = min(episodes.count, MAX_EVALUATION_ENVS)
    with trained_graph(
        Opening.of(run, opening), overrides=overrides, num_envs=num_envs, watchers=watchers
    ) as (graph_manager, opened):
        start = opened.runtime.seed if seed is None else seed
        evaluation = graph_manager.evaluate(episodes, seed=start, sampling=sampling)
    folder = opened.folder
    checkpoint = opened.require_checkpoint("evaluate").path.name
    document = {
        "created": now(),
        "checkpoint": checkpoint,
        "seed": seed,
        "sampling": sampling,
        "level": shown_level(graph_manager.parameters.environment.level),
        "overrides": overrides_json(overrides or {}),
    }
    try:
        make_folder(folder.evaluations)
        file = unused(folder.evaluations / f"{checkpoint}.json")
        write_json(file, document | evaluation_json(evaluation))
    except OSError as error:
        warn(f"the evaluation cannot be written to {folder.path}: {error.strerror}")
        return evaluation, None
    for part in built:
        for written in part.evaluated(file):
            on_written(written)
    return evaluation, file


@contextmanager
def trained_graph(
    opening: Opening,
    *,
    overrides: Mapping[str, object] | None = None,
    num_envs: int | None = None,
    watchers: Sequence[EvaluationWatcher] = (),
) -> Iterator[tuple[GraphManager, OpenedRun]]:
    """A run's agents as they were at a checkpoint, in environments to evaluate in.

    Args:
        opening: Which run, and how.
        overrides: Changes of the environment.
        num_envs: Environments in parallel.
        watchers: Watchers of evaluations.

    Yields:
        The graph manager, whose graph is built, and the run.

    Raises:
        CheckpointError: The run has no checkpoint yet, or it is damaged.
    """
    opened = open_run(opening, learns=False)
    checkpoint = opened.require_checkpoint("evaluate")
    graph_manager = opened.graph_manager
    if overrides:
        graph_manager = _with_changed_environment(opened, overrides)
    with live_graph(
        graph_manager, opened.runtime, training=False, evaluation_envs=num_envs, watchers=watchers
    ):
        with fitting(checkpoint, format_overrides(overrides or {})):
            graph_manager.evaluations.load_agents(checkpoint.state, elsewhere=bool(overrides))
        yield graph_manager, opened


def evaluate_untrained(
    graph_manager: GraphManager,
    runtime: Runtime,
    *,
    episodes: EnvironmentEpisodes = FINAL_EPISODES,
    sampling: bool = False,
) -> Evaluation:
    """Evaluate an experiment's agents as they are before any training; writes nothing."""
    with live_graph(graph_manager, runtime, training=False):
        load_levels(graph_manager)
        return graph_manager.evaluate(episodes, seed=runtime.seed, sampling=sampling)


def evaluation_json(evaluation: Evaluation) -> Json:
    """An evaluation's numbers, those of its levels, and its episodes, as JSON."""
    episodes = {name: values.tolist() for name, values in evaluation.arrays.items()}
    return {
        "environment_steps": evaluation.environment_steps,
        "training_steps": evaluation.training_steps,
        "scalars": plain_json(dict(evaluation.scalars)),
        "levels": {record.level: plain_json(dict(record.scalars)) for record in evaluation.levels},
        "episodes": plain_json(episodes),
    }


@contextmanager
def _memory_errors_named(graph_manager: GraphManager) -> Iterator[None]:
    """Errors of allocating memory inside are raised as a ConfigurationError in one line."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_full = isinstance(error, MemoryError | torch.cuda.OutOfMemoryError)
        if not (is_full or "allocate memory" in str(error)):
            raise
        raise ConfigurationError(
            f"the experiment does not fit into memory: {str(error).splitlines()[0]}; lower "
            f"num_envs ({graph_manager.parameters.num_envs:,}), the networks' layers or the "
            "capacity of its memories"
        ) from error


def _with_changed_environment(opened: OpenedRun, overrides: Mapping[str, object]) -> GraphManager:
    """The run's agents in a changed environment.

    Raises:
        SpaceError: They would see or do something else there.
        ConfigurationError: Something else is to be changed.
    """
    paths = {}
    for path, value in overrides.items():
        kind, dot, rest = path.partition(".")
        if kind not in ("environment", "evaluation_environment"):
            raise ConfigurationError(
                f"an evaluation cannot change '{path}': only the environment (environment...) "
                "can be another than in training; to train with other parameters use coach fork"
            )
        paths[f"environment{dot}{rest}"] = value
    changed = with_overrides(opened.graph_manager, paths)
    known = known_spaces(opened.folder, opened.manifest)
    with closing(changed.parameters.environment.build(num_envs=1)) as environment:
        found = environment.spaces
    for what in ("observation", "action"):
        mine, other = getattr(known, what), getattr(found, what)
        if mine != other:
            raise SpaceError(
                f"the agents know the {what} space {mine}; "
                f"with {format_overrides(paths)} it is {other}; "
                "evaluate where it is the same"
            )
    return changed
