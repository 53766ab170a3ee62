"""Evaluating an experiment apart from its training: at the end of a run, later, or before.

record, file = evaluate_run(Path("experiments/cartpole/..."), episodes=EnvironmentEpisodes(100))
"""

from pathlib import Path

from coach_rl.core.errors import CheckpointError
from coach_rl.core.seeding import integer_seed
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.experiment.checkpoint import read_checkpoint
from coach_rl.experiment.checkpoint_keeper import require_same_seed
from coach_rl.experiment.live_graph import live_graph
from coach_rl.experiment.loaded_levels import load_levels
from coach_rl.experiment.run_folder import RunFolder, find_run, now, rebuild
from coach_rl.experiment.strict_json import Json, plain_json, write_json
from coach_rl.experiment.videos import Videos
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import TaskParameters
from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.video import VideoParameters

FINAL_EPISODES = EnvironmentEpisodes(20)
"""Episodes of the evaluation at a run's end."""


def evaluate_run(
    run: Path,
    *,
    episodes: EnvironmentEpisodes = FINAL_EPISODES,
    seed: int | None = None,
    device: str | None = None,
    threads: int = 1,
    video: VideoParameters | None = None,
) -> tuple[LogRecord, Path]:
    """Evaluate a run's last checkpoint, or the one named, and change nothing in the run.

    Args:
        run: A run's folder, or one of its checkpoints.
        episodes: How many.
        seed: Of the episodes; None takes that of the run's final evaluation.
        device: Where networks live; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU.
        video: How to film the first of the episodes, see `evaluation_film`; None films none.

    Returns:
        The evaluation, and the file in the run's folder that holds it.
    """
    folder, path = find_run(run)
    if path is None:
        raise CheckpointError(
            f"the run {folder.path} has no checkpoint yet that could be evaluated"
        )
    graph_manager, task, _ = rebuild(folder, device, learns=False)
    checkpoint = read_checkpoint(path)
    require_same_seed(checkpoint, task.seed)
    videos = None if video is None else Videos(graph_manager, video)
    with live_graph(graph_manager, task, threads=threads):
        graph_manager.load_state_dict(checkpoint.state)
        record = final_evaluation(graph_manager, task, episodes, seed=seed)
    folder.evaluations.mkdir(exist_ok=True)
    file = _free_file(folder.evaluations, path.name)
    document = {"created": now(), "checkpoint": path.name, "seed": seed}
    write_json(file, document | evaluation_json(record))
    if videos is not None:
        videos.write(evaluation_film(file))
    return record, file


def evaluation_film(file: Path) -> Path:
    """Where the film of an evaluation that `evaluate_run` wrote is, without the format's ending."""
    return RunFolder(file.parent.parent).videos / f"{file.stem}_evaluation"


def evaluate_untrained(
    graph_manager: GraphManager,
    task: TaskParameters,
    *,
    episodes: EnvironmentEpisodes = FINAL_EPISODES,
    threads: int = 1,
) -> LogRecord:
    """Evaluate an experiment's agents as they are before any training; writes nothing."""
    with live_graph(graph_manager, task, threads=threads):
        load_levels(graph_manager)
        return final_evaluation(graph_manager, task, episodes)


def final_evaluation(
    graph_manager: GraphManager,
    task: TaskParameters,
    episodes: EnvironmentEpisodes,
    *,
    seed: int | None = None,
) -> LogRecord:
    """An evaluation on starts that the evaluations while training have not seen.

    Args:
        graph_manager: Whose agents to evaluate; its graph is created.
        task: Its seed names the stream of the starts.
        episodes: How many.
        seed: Of the starts; None takes the run's own.
    """
    if seed is None:
        seed = integer_seed(task.seed, "final evaluation")
    *_, record = graph_manager.evaluate(episodes, seed=seed)
    return record


def evaluation_json(record: LogRecord) -> Json:
    """An evaluation's numbers and its episodes, as JSON."""
    return {
        "environment_steps": record.environment_steps,
        "training_steps": record.training_steps,
        "scalars": plain_json(dict(record.scalars)),
        "episodes": {name: plain_json(values.tolist()) for name, values in record.arrays.items()},
    }


def _free_file(folder: Path, stem: str) -> Path:
    path, attempt = folder / f"{stem}.json", 2
    while path.exists():
        path, attempt = folder / f"{stem}_{attempt}.json", attempt + 1
    return path
