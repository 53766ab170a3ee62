"""A run's policy without the rest of it: a run folder that can be played, evaluated and loaded.

    manifest.json           of the run, without what names its machine; `only_policy` has the score
    preset.py               as in the run
    README.md               its card, see `card`
    film.gif                an episode, where requested
    checkpoints/step_N      networks and filters that acting needs; no optimisers or memories

Trained agents of the package and folders for model hubs are made of it. A fork of it begins
optimisers, memories and training episodes new.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from coach_rl.configuration.extensions import import_offers
from coach_rl.configuration.file_writing import filled_folder
from coach_rl.configuration.strict_json import Json, read_text, write_text
from coach_rl.core.errors import ConfigurationError, RunError, require, warn
from coach_rl.core.log_records import Evaluation
from coach_rl.core.records import Array
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.exporting.archive import how_to_act
from coach_rl.extensions.exporting.card import CARD, card
from coach_rl.graph_managers.graph import MAX_EVALUATION_ENVS
from coach_rl.runs.checkpoint import LAST, Checkpoint, point, write_checkpoint
from coach_rl.runs.folder import ONLY_POLICY, RunFolder, write_manifest
from coach_rl.sessions.evaluation import trained_graph
from coach_rl.sessions.opening import OpenedRun, Opening, OpeningArguments

EPISODES = EnvironmentEpisodes(100)
"""Episodes that a policy is scored in."""
SEED = 1_000
"""Seed of these episodes, so that they are none that the run was evaluated in."""
_FILM = "film.gif"
"""Name of the film of the first of them."""
FILMS: list[Callable[[Opening, Path, int], None]] = []
"""Functions that film an episode of a run into a file, with a seed; added by what is offered to
this extension. The last is used."""
_NORMAL_95 = 1.96
_OF_THE_MACHINE = ("checksum", "job", "loaded", "settings")
"""Keys of a run's manifest that do not concern its policy."""
_NOTES = ("newest_periodic", "seconds", "seed")
"""Notes of a checkpoint that do not belong to the run's other files."""


def write_policy(
    run: str | Path | Opening,
    to: Path,
    *,
    episodes: EnvironmentEpisodes = EPISODES,
    film: bool = False,
    **opening: Unpack[OpeningArguments],
) -> Json:
    """Write a run's policy as a folder of its own with a card, scored by a greedy evaluation.

    Args:
        run: A run's folder (its last checkpoint), one of its checkpoints, or `RUN@STEP`.
        to: The new folder.
        episodes: Episodes of the evaluation.
        film: Whether to film the first of them; where that is impossible, a `CoachWarning` has the
            reason.
        **opening: `device`, `threads`, `last_good` and `trust` of `Opening`.

    Returns:
        The folder's manifest.

    Raises:
        ConfigurationError: The folder exists or cannot be written, or there is no such run.
        CheckpointError: The run has no checkpoint yet, or it is damaged.
    """
    how = Opening.of(run, opening)
    envs = min(episodes.count, MAX_EVALUATION_ENVS)
    with new_folder(to) as unfinished:
        with trained_graph(how, num_envs=envs) as (graph_manager, opened):
            policies = graph_manager.evaluations.policies()
            evaluation = graph_manager.evaluate(episodes, seed=SEED)
        checkpoint = opened.require_checkpoint("score")
        state = {
            "agents": policies,
            "only_policies": True,
            "training": {"clock": checkpoint.state["training"]["clock"]},
            "progress": checkpoint.state["progress"],
        }
        folder = RunFolder(unfinished)
        path = folder.checkpoints / checkpoint.path.name
        write_checkpoint(path, state, _notes(checkpoint))
        point(folder.checkpoints, LAST, path.name)
        manifest = _manifest(opened, evaluation)
        write_manifest(folder, manifest)
        if manifest["preset"] is not None:
            write_text(folder.preset, read_text(opened.folder.preset))
        shown = _FILM if film and _is_filmed(how, unfinished / _FILM) else None
        acts = how_to_act("agent", graph_manager.parameters.levels)
        write_text(unfinished / CARD, card(manifest, acts=acts, film=shown))
    return manifest


def _is_filmed(run: Opening, file: Path) -> bool:
    """Film an episode of a run; False where that is impossible, with a warning."""
    import_offers("exporting")
    try:
        require(bool(FILMS), "no extension that is there makes films")
        FILMS[-1](run, file, SEED)
    except (ConfigurationError, RunError) as error:
        warn(f"no episode is filmed: {error}")
        return False
    return True


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill, which then becomes `path`, whole or not at all.

    Raises:
        ConfigurationError: `path` exists, or cannot be written.
    """
    if path.exists():
        raise ConfigurationError(f"{path} exists already; delete it, or name another with --to")
    try:
        with filled_folder(path.absolute()) as filled:
            yield filled
    except OSError as error:
        shutil.rmtree(path, ignore_errors=True)
        raise ConfigurationError(
            f"the folder {path} cannot be written: {error.strerror}; name another with --to"
        ) from error


def _manifest(opened: OpenedRun, evaluation: Evaluation) -> Json:
    """The run's manifest without what names its machine, with the score."""
    manifest = {key: of for key, of in opened.manifest.items() if key not in _OF_THE_MACHINE}
    preset = manifest["preset"]
    if preset is not None:
        manifest["preset"] = {**preset, "file": Path(preset["file"]).name, "neighbours": {}}
    for fork in manifest.get("ancestry", ()):
        fork["run"] = Path(fork["run"]).name
    hardware = {key: of for key, of in manifest["hardware"].items() if key != "host"}
    about = {
        "environment_steps": evaluation.environment_steps,
        "training_steps": evaluation.training_steps,
        "score": _score(evaluation),
    }
    changed = {"hardware": hardware, "module_folders": {}, "resumes": [], ONLY_POLICY: about}
    return {**manifest, **changed}


def _score(evaluation: Evaluation) -> Json:
    """The mean reward with its 95 % interval over episodes, and the rate of success."""
    rewards: Array = evaluation.arrays["episode/reward"]
    mean = float(rewards.mean())
    half = _NORMAL_95 * float(rewards.std(ddof=min(1, len(rewards) - 1))) / len(rewards) ** 0.5
    success = evaluation.scalars.get("evaluation/success_rate")
    return {
        "episodes": len(rewards),
        "seed": SEED,
        "reward_mean": mean,
        "reward_std": float(rewards.std()),
        "reward_interval": [mean - half, mean + half],
        "success_rate": None if success is None else float(success),
    }


def _notes(checkpoint: Checkpoint) -> Json:
    """Notes of the new checkpoint: those of the run's that hold without its other files."""
    kept = {key: checkpoint.notes[key] for key in _NOTES}
    return {**kept, "reasons": ["last"], "periodic": None, "best": None}
