"""Runs in a list, with their state, scores and size."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from coach_rl.core.errors import CheckpointError
from coach_rl.runs.folder import MANIFEST
from coach_rl.studies.run_groups import REWARD
from coach_rl.studies.scores import RunScores, read_scores, runs_below, with_failures

DAMAGED = "damaged"
STATES = ("running", "done", "stopped", "pruned", "failed", DAMAGED)


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run of the list."""

    path: Path
    """Its folder."""
    size: int
    """Bytes on the disk, checkpoints included."""
    age_seconds: float
    """Seconds since it was begun."""
    scores: RunScores | None
    """Its numbers; None where its folder is damaged."""
    damage: str = ""
    """The damage of the folder, in a line; empty if there is none."""

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return DAMAGED if self.scores is None else self.scores.state

    def best(self, metric: str) -> float | None:
        """The best evaluation while training."""
        return None if self.scores is None else self.scores.best(metric)

    def last(self, metric: str) -> float | None:
        """The final evaluation, or the last one so far."""
        return None if self.scores is None else self.scores.last(metric)


def list_runs(folder: Path) -> list[ListedRun]:
    """All runs in a folder, however deep, sorted by path."""
    runs = [listed_run(path) for path in runs_below(folder)]
    counted = iter(with_failures([run.scores for run in runs if run.scores is not None]))
    return [run if run.scores is None else replace(run, scores=next(counted)) for run in runs]


def listed_run(path: Path) -> ListedRun:
    """A run as the list has it; damage is noted, not raised."""
    size = _size(path)
    try:
        scores = read_scores(path)
        begun = datetime.fromisoformat(scores.created)
    except (CheckpointError, ValueError) as error:
        begun = datetime.fromtimestamp((path / MANIFEST).lstat().st_mtime, UTC)
        return ListedRun(
            path=path, size=size, age_seconds=_since(begun), scores=None, damage=str(error)
        )
    return ListedRun(path=path, size=size, age_seconds=_since(begun), scores=scores)


def selected(
    runs: Sequence[ListedRun],
    *,
    states: Sequence[str] = (),
    preset: str = "",
    level: str = "",
    study: str = "",
) -> list[ListedRun]:
    """Those that fit all that is asked for; empty means any.

    Args:
        runs: Of which.
        states: One of these.
        preset: The name of their preset contains it, in any case.
        level: The level of their environment contains it, in any case.
        study: The study that they belong to.
    """
    return [
        run
        for run in runs
        if (not states or run.state in states)
        and (not preset or _contains(run, lambda scores: scores.preset, preset))
        and (not level or _contains(run, lambda scores: scores.level, level))
        and (not study or (run.scores and run.scores.labels.get("study") == study))
    ]


def sort_keys(metric: str = REWARD) -> dict[str, Callable[[ListedRun], tuple[bool, float | str]]]:
    """The keys that a list can be sorted by, each ascending; runs without a value come last.

    Args:
        metric: Of evaluations.
    """

    def number(value: float | None, sign: float = 1.0) -> tuple[bool, float]:
        return (value is None, 0.0 if value is None else sign * value)

    return {
        "path": lambda run: (False, str(run.path)),
        "age": lambda run: number(run.age_seconds),
        "state": lambda run: (False, run.state),
        "steps": lambda run: number(run.scores and run.scores.environment_steps, -1.0),
        "best": lambda run: number(run.best(metric), -1.0),
        "last": lambda run: number(run.last(metric), -1.0),
        "size": lambda run: number(run.size, -1.0),
    }


def _contains(run: ListedRun, text: Callable[[RunScores], str], word: str) -> bool:
    return run.scores is not None and word.lower() in text(run.scores).lower()


def _since(begun: datetime) -> float:
    return (datetime.now(UTC) - begun.astimezone(UTC)).total_seconds()


def _size(folder: Path) -> int:
    """Bytes of all files; one that several names share counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                info = os.lstat(os.path.join(path, name))
            except OSError:  # a checkpoint that was thinned out meanwhile
                continue
            sizes[info.st_dev, info.st_ino] = info.st_size
    return sum(sizes.values())
