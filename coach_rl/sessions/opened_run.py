"""Opening a run that exists: its folder, the checkpoint to start from, the experiment.

opened = open_run(Path("experiments/cartpole/...@20000"))
opened = open_run(Path("experiments/cartpole/..."), last_good=True)
"""

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.finding import find_run, offering_last_good
from coach_rl.runs.folder import ONLY_RECORDS, RunFolder, read_manifest
from coach_rl.runs.keeper import require_same_seed
from coach_rl.sessions.rebuilding import rebuild


@dataclass(frozen=True, kw_only=True)
class OpenedRun:
    """A run read from its folder; its graph is not yet created."""

    folder: RunFolder
    checkpoint: Checkpoint | None
    """The checkpoint to start from; None where the run has none yet."""
    graph_manager: GraphManager
    runtime: Runtime
    manifest: Json

    @property
    def later(self) -> list[Path]:
        """The run's checkpoints after the one to start from, earliest first."""
        known = list_checkpoints(self.folder.checkpoints)
        return known[known.index(self.checkpoint.path) + 1 :] if self.checkpoint else []


def open_run(
    run: Path,
    *,
    device: str | None = None,
    threads: int | None = None,
    learns: bool = True,
    last_good: bool = False,
    trust: Collection[str] = (),
) -> OpenedRun:
    """Read a run; nothing in it is changed.

    Args:
        run: A run's folder, one of its checkpoints, or `RUN@STEP`; see `find_run`.
        device: Where networks live from now on; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU; None keeps the run's own.
        learns: Whether it continues learning; see `rebuild`.
        last_good: Whether to take the newest checkpoint that can be read.
        trust: Modules whose code may be run, besides that of the user's own runs.

    Raises:
        ConfigurationError: There is no such run, or it cannot be rebuilt.
        CheckpointError: A file of it is damaged; says which, and the newest good checkpoint.
    """
    folder, path = find_run(run, last_good=last_good)
    if path is None and ONLY_RECORDS in read_manifest(folder):
        raise ConfigurationError(
            f"the run {folder.path} was imported without its checkpoints, so nothing can continue "
            "from it; use the run itself where it was made"
        )
    graph_manager, runtime, manifest = rebuild(
        folder, device, threads=threads, learns=learns, trust=trust
    )
    checkpoint = None
    if path is not None:
        with offering_last_good(folder):
            checkpoint = read_checkpoint(path, memories=learns)
        require_same_seed(checkpoint, manifest["task"]["seed"])
    return OpenedRun(
        folder=folder,
        checkpoint=checkpoint,
        graph_manager=graph_manager,
        runtime=runtime,
        manifest=manifest,
    )


def warn_of_missing_memories(checkpoint: Checkpoint) -> None:
    """Warn where learning from a checkpoint cannot be exact because it lacks replay memories."""
    if not checkpoint.has_memories:
        warnings.warn(
            f"{checkpoint.path.name} was saved without replay memories, so the resumed run is not "
            "exact: its agents act with what they have learned, and learn again once their "
            "memories hold learning.learning_starts transitions",
            CoachWarning,
            stacklevel=3,
        )


@contextmanager
def fitting(checkpoint: Checkpoint, changes: str = "") -> Iterator[None]:
    """Whatever keeps a state from being loaded inside is a CheckpointError in one line.

    Args:
        checkpoint: Whose state.
        changes: What was changed in the experiment since, for the error.
    """
    although = f" with {changes}" if changes else ""
    try:
        yield
    except CheckpointError as error:
        if not changes:
            raise
        raise CheckpointError(f"{checkpoint.path} does not fit{although}: {error}") from error
    except KeyError as error:
        raise CheckpointError(
            f"{checkpoint.path} does not fit the experiment{although}: it has no {error}"
        ) from error
    except (TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        raise CheckpointError(
            f"{checkpoint.path} does not fit the experiment{although}: {error}"
        ) from error
