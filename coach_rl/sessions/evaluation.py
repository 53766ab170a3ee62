"""Evaluating an experiment apart from its training: at the end of a run, later, or before.

evaluation, file = evaluate_run(Path("experiments/cartpole/..."), episodes=EnvironmentEpisodes(100))
"""

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import torch

from coach_rl.configuration.module_folders import let_import_named
from coach_rl.configuration.overrides import apply_overrides, overrides_json, said
from coach_rl.configuration.spaces_json import spaces_from_json
from coach_rl.configuration.strict_json import Json, plain_json, write_json
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    SpaceError,
    exits_as_errors,
    require,
)
from coach_rl.core.file_writing import make_folder
from coach_rl.core.level_name import shown_level
from coach_rl.core.process_group import Order
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.core.typed_values import describe_value
from coach_rl.graph_managers.callbacks import Callback, CallbackParameters
from coach_rl.graph_managers.evaluations import never
from coach_rl.graph_managers.graph import MAX_EVALUATION_ENVS
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.torch_settings import torch_settings, with_threads
from coach_rl.runs.checkpoint import Checkpoint
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.provenance import now
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.opened_run import OpenedRun, fitting, open_run
from coach_rl.telemetry.episode_recorder import (
    EpisodeRecorder,
    EvaluationWatcher,
    TrainingRecorder,
)
from coach_rl.telemetry.records import Evaluation
from coach_rl.telemetry.video import VideoParameters, write_video

CERTIFY = re.compile(r"(levels|stack)\.\d+\.certify(\..+)?")
"""Paths of parameters that say how a level certifies its decisions."""
FINAL_EPISODES = EnvironmentEpisodes(20)
"""Episodes of the evaluation at a run's end."""


@contextmanager
def live_graph(
    graph_manager: GraphManager,
    runtime: Runtime,
    *,
    training: bool = True,
    evaluation_envs: int | None = None,
    callbacks: Sequence[Callback | CallbackParameters] = (),
    watcher: EvaluationWatcher | None = None,
    recorder: TrainingRecorder | None = None,
) -> Iterator[None]:
    """The graph is built inside and closed afterwards, whatever happens.

    Args:
        graph_manager: Whose graph.
        runtime: The run's; threads and precision hold while inside, and the other processes of
            its group are notified at the end.
        training: Whether it has environments to train in; without them it can only evaluate.
        evaluation_envs: Environments an evaluation runs in parallel; None for the usual number.
        callbacks: Callbacks besides those of the experiment.
        watcher: Films evaluations; None for nothing.
        recorder: Films training episodes; None for nothing.

    Raises:
        ConfigurationError: The graph cannot be built.
    """
    require_graph_manager(graph_manager)
    runtime = with_threads(runtime, graph_manager.parameters.threads)
    with torch_settings(runtime), exits_as_errors():
        try:
            with _memory_errors_named(graph_manager):
                graph_manager.create_graph(
                    runtime,
                    training=training,
                    evaluation_envs=evaluation_envs,
                    callbacks=callbacks,
                    watcher=watcher,
                    recorder=recorder,
                )
            yield
            runtime.group.announce(Order.END)
        finally:
            graph_manager.close()


def require_graph_manager(value: object) -> None:
    """Raise `ConfigurationError` for what is no graph manager, such as a preset's function."""
    require(
        isinstance(value, GraphManager),
        f"an experiment is a GraphManager, got {describe_value(value)}; call the preset's "
        "function, or write load_preset(find_preset(NAME)).build()",
    )


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


def evaluate_run(
    run: Path,
    *,
    episodes: EnvironmentEpisodes = FINAL_EPISODES,
    overrides: Mapping[str, object] | None = None,
    num_envs: int | None = None,
    sampling: bool = False,
    seed: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    last_good: bool = False,
    video: VideoParameters | None = None,
    trust: Collection[str] = (),
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
        device: Where networks live; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU; None keeps the run's own.
        last_good: Whether to take the run's newest checkpoint that can be read.
        video: How to film the first of the episodes, see `evaluation_film`; None films none.
        trust: Modules whose code the run may use, besides those of the user's own runs.

    Returns:
        The evaluation, and the file in the run's folder that holds it; None where the folder
        cannot be written to, which a `CoachWarning` says.

    Raises:
        SpaceError: The environment's spaces are not those the agents know.
        ConfigurationError: There is no such run, or a change cannot be made.
        CheckpointError: A file of the run is damaged, or it has no checkpoint yet.
    """
    require(
        video is None or video.of == "evaluation",
        "an evaluation has no training episodes to film; leave out of='training' (--video_of)",
    )
    recorder = None if video is None else EpisodeRecorder(video)
    if num_envs is None and episodes > FINAL_EPISODES:
        num_envs = min(episodes.count, MAX_EVALUATION_ENVS)
    with trained_graph(
        run,
        overrides=overrides,
        num_envs=num_envs,
        device=device,
        threads=threads,
        last_good=last_good,
        trust=trust,
        watcher=recorder,
    ) as (graph_manager, opened, checkpoint):
        evaluation = final_evaluation(
            graph_manager, opened.runtime, episodes, seed=seed, sampling=sampling
        )
    folder = opened.folder
    document = {
        "created": now(),
        "checkpoint": checkpoint.path.name,
        "seed": seed,
        "sampling": sampling,
        "level": shown_level(graph_manager.parameters.environment.level),
        "overrides": overrides_json(overrides or {}),
    }
    try:
        make_folder(folder.evaluations)
        if video is not None:
            make_folder(folder.videos)
        file = _free_file(folder.evaluations, checkpoint.path.name)
        write_json(file, document | evaluation_json(evaluation))
    except OSError as error:
        warnings.warn(
            f"the evaluation cannot be written to {folder.path}: {error.strerror}",
            CoachWarning,
            stacklevel=2,
        )
        return evaluation, None
    film = None if recorder is None else recorder.take_film()
    if film is not None and video is not None:
        write_video(film.shots, evaluation_film(file), video)
    return evaluation, file


@contextmanager
def trained_graph(
    run: Path,
    *,
    overrides: Mapping[str, object] | None = None,
    num_envs: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    last_good: bool = False,
    trust: Collection[str] = (),
    watcher: EvaluationWatcher | None = None,
) -> Iterator[tuple[GraphManager, OpenedRun, Checkpoint]]:
    """A run's agents as they were at a checkpoint, in environments to evaluate in.

    Args:
        run: As of `evaluate_run`, and so are the other arguments.
        overrides: Changes of the environment.
        num_envs: Environments in parallel.
        device: Where networks live.
        threads: Threads of one tensor operation.
        last_good: Whether to take the newest checkpoint that can be read.
        trust: Modules whose code may be run.
        watcher: What looks at evaluations; None for nothing.

    Yields:
        The graph manager, whose graph is built; the run; the checkpoint.

    Raises:
        CheckpointError: The run has no checkpoint yet, or it is damaged.
    """
    opened = open_run(
        run, device=device, threads=threads, learns=False, last_good=last_good, trust=trust
    )
    checkpoint, graph_manager = opened.checkpoint, opened.graph_manager
    if checkpoint is None:
        raise CheckpointError(
            f"the run {opened.folder.path} has no checkpoint yet that could be evaluated"
        )
    if overrides:
        graph_manager = _elsewhere(opened, overrides)
    with live_graph(
        graph_manager, opened.runtime, training=False, evaluation_envs=num_envs, watcher=watcher
    ):
        with fitting(checkpoint, said(overrides or {})):
            graph_manager.evaluations.load_agents(checkpoint.state, elsewhere=bool(overrides))
        yield graph_manager, opened, checkpoint


def evaluation_film(file: Path) -> Path:
    """Return the path of the video that `evaluate_run` wrote, without the format's ending."""
    return RunFolder(file.parent.parent).videos / f"{file.stem}_evaluation"


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
        return final_evaluation(graph_manager, runtime, episodes, sampling=sampling)


def final_evaluation(
    graph_manager: GraphManager,
    runtime: Runtime,
    episodes: EnvironmentEpisodes,
    *,
    seed: int | None = None,
    sampling: bool = False,
    is_stopped: Callable[[], bool] = never,
) -> Evaluation:
    """An evaluation on starts that the evaluations while training have not seen.

    Args:
        graph_manager: Whose agents to evaluate; its graph is created.
        runtime: The run's.
        episodes: How many.
        seed: Of the starts; None takes the task's.
        sampling: Whether agents explore.
        is_stopped: Asked at every step whether to give up.

    Raises:
        EvaluationStopped: `is_stopped` said so.
    """
    seed = runtime.seed if seed is None else seed
    return graph_manager.evaluate(episodes, seed=seed, sampling=sampling, is_stopped=is_stopped)


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


def _elsewhere(opened: OpenedRun, overrides: Mapping[str, object]) -> GraphManager:
    """The run's agents in a changed environment, or with plans certified in another way.

    Raises:
        SpaceError: They would see or do something else there.
        ConfigurationError: Something else is to be changed.
    """
    paths = {}
    for path, value in overrides.items():
        if CERTIFY.fullmatch(path):
            paths[path] = value
            continue
        kind, dot, rest = path.partition(".")
        if kind not in ("environment", "evaluation_environment"):
            raise ConfigurationError(
                f"an evaluation cannot change '{path}': only the environment (environment...) and "
                "the way plans are certified (levels.0.certify, or stack.0.certify in a HAC stack) "
                "can be others than in training; to train with other parameters use coach fork"
            )
        paths[f"environment{dot}{rest}"] = value
    parameters = opened.graph_manager.parameters
    changed = apply_overrides(parameters, paths)
    let_import_named(code_in_parameters(changed), Path.cwd())
    manifest = opened.manifest
    known = (
        spaces_from_json(manifest["spaces"], source=str(opened.folder.manifest))
        if "spaces" in manifest
        else _spaces(parameters)  # of a run of an earlier version
    )
    found = _spaces(changed)
    for what in ("observation", "action"):
        mine, other = getattr(known, what), getattr(found, what)
        if mine != other:
            raise SpaceError(
                f"the agents know the {what} space {mine}; with {said(paths)} it is {other}; "
                "evaluate where it is the same"
            )
    return type(opened.graph_manager)(changed)


def _spaces(parameters: GraphParameters) -> EnvironmentSpaces:
    """The spaces of an experiment's environment."""
    with closing(parameters.environment.build(num_envs=1)) as environment:
        return environment.spaces


def _free_file(folder: Path, stem: str) -> Path:
    path, attempt = folder / f"{stem}.json", 2
    while path.exists():
        path, attempt = folder / f"{stem}_{attempt}.json", attempt + 1
    return path
