"""Levels that start from what a level of another run has learned.

    LevelParameters(name="low", load="experiments/walk/line_seed0_2026-05-01_10-00-00", ...)
    LevelParameters(name="low", load="experiments/walk/.../checkpoints/best:legs", ...)

Networks and the statistics of filters come along, memory, counters and optimisers do not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.experiment.checkpoint import Checkpoint, read_checkpoint
from coach_rl.experiment.run_folder import find_run
from coach_rl.experiment.strict_json import Json
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import LevelParameters


@dataclass(frozen=True, kw_only=True)
class Source:
    """Source of a level's agent."""

    checkpoint: Path
    """Path of the other run's checkpoint, absolute."""
    level: str
    """The level's name there."""


def load_levels(graph_manager: GraphManager, manifest: Json | None = None) -> dict[str, Json]:
    """Let the levels that are to be loaded start from what those of other runs have learned.

    Args:
        graph_manager: Its graph is created.
        manifest: Of a run that starts anew, whose levels come from the checkpoints they came
            from then; None for a new run.

    Returns:
        For the manifest: checkpoint and level by the name of each level that was loaded.

    Raises:
        ConfigurationError: There is no such run or level, or it does not fit; names the level.
    """
    known: Mapping[str, Json] = {} if manifest is None else manifest.get("loaded", {})
    read: dict[Path, Checkpoint] = {}
    loaded: dict[str, Json] = {}
    for level in graph_manager.parameters.levels:
        if level.load is None:
            continue
        try:
            source = _known(known[level.name]) if level.name in known else _source(level)
            if source.checkpoint not in read:
                read[source.checkpoint] = read_checkpoint(source.checkpoint, memories=False)
            agents = read[source.checkpoint].state["agents"]
            if source.level not in agents:
                raise UnknownNameError("level there", source.level, agents, "name it as RUN:LEVEL")
            graph_manager.graph.agents[level.name].load_policy(agents[source.level])
        except ConfigurationError as error:
            raise ConfigurationError(
                f"level '{level.name}' cannot be loaded from {level.load}: {error}"
            ) from error
        loaded[level.name] = {"checkpoint": str(source.checkpoint), "level": source.level}
    return loaded


def _known(entry: Json) -> Source:
    return Source(checkpoint=Path(entry["checkpoint"]), level=entry["level"])


def _source(level: LevelParameters) -> Source:
    """Return the source that `RUN` or `RUN:LEVEL` names; an existing path is always a RUN."""
    assert level.load is not None
    run, name = level.load, level.name
    if not Path(run).expanduser().exists() and ":" in run:
        run, _, name = run.rpartition(":")
    folder, checkpoint = find_run(Path(run))
    if checkpoint is None:
        raise ConfigurationError(f"the run {folder.path} has no checkpoint yet")
    return Source(checkpoint=checkpoint, level=name)
