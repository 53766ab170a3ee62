"""Going back to the last checkpoint of a run that has diverged."""

import warnings

from coach_rl.core.errors import CoachWarning, DivergedError
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.logs import planned_cuts
from coach_rl.sessions.new_streams import with_new_streams


def can_roll_back(graph_manager: GraphManager, folder: RunFolder) -> bool:
    """Return whether a run may be rolled back once more, and has a checkpoint to go back to."""
    most = graph_manager.parameters.divergence.most_roll_backs
    return graph_manager.graph.clock.roll_backs < most and bool(
        list_checkpoints(folder.checkpoints)
    )


def roll_back(
    graph_manager: GraphManager,
    folder: RunFolder,
    keeper: CheckpointKeeper,
    seed: int,
    *,
    error: DivergedError,
) -> int:
    """Go back to the last checkpoint, as a resumed run does, with other random numbers.

    Args:
        graph_manager: The run.
        folder: Its folder, whose logs are closed; they are cut back as well.
        keeper: Keeps its checkpoints.
        seed: The run's.
        error: Says how it diverged.

    Returns:
        The number of times that the run has been rolled back.
    """
    clock = graph_manager.graph.clock
    attempt, done = clock.roll_backs + 1, clock.environment_steps
    checkpoint = read_checkpoint(find_checkpoint(folder.checkpoints))
    cuts = planned_cuts(folder.path, checkpoint)
    keeper.restore(checkpoint)
    for cut in cuts:
        cut.make()
    state = with_new_streams(checkpoint.state, seed=seed, names=("roll back", attempt))
    graph_manager.load_state_dict(state)
    clock.roll_backs = attempt
    most = graph_manager.parameters.divergence.most_roll_backs
    warnings.warn(
        f"{error}. Rolled back from {done:,} environment steps to {checkpoint.path.name}, with "
        f"new random numbers ({attempt} of {most} times)",
        CoachWarning,
        stacklevel=2,
    )
    return attempt
