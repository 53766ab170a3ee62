"""A run's folder: its parts, finding it by a path, creating and deleting it.

    experiments/<name>/<level>_seed<seed>_<time-stamp>/
        manifest.json          everything the run was made from, see `manifest`
        preset.py              the preset's source, where there was one (not of files it imports)
        checkpoints/           see `checkpoint`
        log.jsonl, *.csv       the run's records
        events.out.tfevents.*  the same for TensorBoard, which names a run by its folder
        videos/                where requested
        summary.json           results at the end of the run

One process at a time writes into it. It appears in one step and disappears in one, so there is
never one without a manifest; folders that are not finished have names of their own.
"""

import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from coach_rl.configuration.file_writing import sync
from coach_rl.configuration.strict_json import (
    Json,
    read_json,
    read_sealed,
    require_types,
    require_version,
    sealed,
    write_json,
    write_text,
)
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.shown_text import shown_level
from coach_rl.runs.checkpoint import checksum_of, find_checkpoint, list_checkpoints, newest_whole
from coach_rl.runs.lock import locked
from coach_rl.runs.shown_facts import ShowsFacts

SCHEMA_VERSION = 2
"""Version of the manifest; raised when another reader could misread it."""
EXPERIMENTS = Path("experiments")
"""The usual folder of all experiments."""
MANIFEST = "manifest.json"
_LEVEL_LENGTH = 40
"""Characters of a level's name in a folder's at most."""
ONLY_RECORDS = "only_records"
"""A key of the manifests of runs of which there are only records, without checkpoints."""
ONLY_POLICY = "only_policy"
"""A key of the manifests of policies without the rest of their run; see `sessions.policies`."""
_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "created": str,
    "preset": (dict, type(None)),
    "graph_manager": str,
    "parameters": dict,
    "task": dict,
    "versions": dict,
    "hardware": dict,
    "resumes": list,
}
_EDITED = (
    "restore it from a copy; to change parameters use `coach fork RUN --as NAME -cp ...`; if you "
    'edited it yourself and mean it, delete its line "checksum"'
)


class _Part:
    """The path of a part of a run, by its name in the folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: "RunFolder", kind: type) -> Path:
        return folder.path / self._name


@dataclass(frozen=True)
class RunFolder(ShowsFacts):
    """Paths of the parts of a run."""

    path: Path
    """`experiments/<name>/<level>_seed<seed>_<time-stamp>`."""

    manifest = _Part(MANIFEST)
    """Everything the run was made from."""
    preset = _Part("preset.py")
    """The preset's source."""
    checkpoints = _Part("checkpoints")
    """The folder of the checkpoints; exists once there is one."""
    summary = _Part("summary.json")
    """The final evaluation."""
    evaluations = _Part("evaluations")
    """The folder of evaluations made afterwards; exists once there is one."""
    images = _Part("images")
    """The folder of pictures of notes; exists once there are some."""

    def facts(self) -> Mapping[str, object]:
        """Its path, and the facts in its manifest and its summary, for notebooks."""
        facts: dict[str, object] = {"run": self.path}
        try:
            manifest = read_manifest(self)
        except CheckpointError as error:
            return {**facts, "problem": error}
        preset = manifest["preset"]
        facts |= {
            "preset": None if preset is None else preset["name"],
            "task": shown_level(str(manifest.get("level", ""))) or None,
            "seed": manifest["task"].get("seed"),
            "begun": manifest["created"],
        }
        try:
            summary = read_json(self.summary)
        except (OSError, CheckpointError):  # a run that is not over has none
            return facts
        counters = {"environment steps": "env_steps", "gradient updates": "training_steps"}
        facts |= {noun: f"{summary[of]:,}" for noun, of in counters.items() if of in summary}
        return facts | facts_of_evaluation(summary.get("evaluation", {}))


def facts_of_evaluation(metrics: Mapping[str, Any]) -> dict[str, object]:
    """Facts about a final evaluation, of metrics as summary.json names them."""
    reward, success = metrics.get("reward_mean"), metrics.get("success_rate")
    return {
        "final mean reward": None if reward is None else f"{reward:,.2f}",
        "final success rate": None if success is None else f"{success:.0%}",
    }


def read_manifest(folder: RunFolder) -> Json:
    """The manifest of a run; CheckpointError when missing, changed, or of another version."""
    source = str(folder.manifest)
    manifest = read_sealed(folder.manifest, next_step=_EDITED)
    require_types(manifest, {"schema_version": object}, source=source)
    versions = manifest.get("versions")
    written_by = versions.get("coach-rl") if isinstance(versions, dict) else None
    require_version(manifest, SCHEMA_VERSION, source=source, written_by=written_by)
    require_types(manifest, _TYPES, source=source)
    if manifest["preset"] is not None:
        entry = {"name": str, "file": str, "function": str, "module": str}
        require_types(manifest["preset"], entry, source=f"the preset in {source}")
    for part in manifest["resumes"]:
        require_types({"resumes[]": part}, {"resumes[]": dict}, source=source)
    return manifest


def write_manifest(folder: RunFolder, manifest: Json) -> None:
    """Write a run's manifest, with its checksum, in today's version."""
    write_json(folder.manifest, sealed({**manifest, "schema_version": SCHEMA_VERSION}))


def find_folder(run: Path) -> RunFolder:
    """The folder of the run that a path names; its manifest and checkpoints are not read.

    Raises:
        ConfigurationError: The path is neither a run's folder nor one of its checkpoints.
    """
    return _named(run)[0]


def find_run(run: Path, *, last_good: bool = False) -> tuple[RunFolder, Path | None]:
    """The run's folder and the checkpoint a path names; None where there is none yet.

    Args:
        run: A run's folder (its last checkpoint), one of its checkpoints, or `RUN@STEP`: after so
            many environment steps, or by its name (`RUN@best`). A folder of runs, also with
            `@STEP`, means the newest of them; `trained:NAME` an agent of the package.
        last_good: Whether to take the newest checkpoint of the run that can be read.

    Raises:
        ConfigurationError: The path is neither a run's folder nor one of its checkpoints.
        CheckpointError: The pointer to the checkpoint is damaged, or no checkpoint can be read.
    """
    folder, name = _named(run)
    if name is None and not list_checkpoints(folder.checkpoints):
        return folder, None
    if last_good:
        good = newest_whole(folder.checkpoints)
        if good is None:
            raise CheckpointError(f"no checkpoint in {folder.checkpoints} can be read")
        return folder, good
    with offering_last_good(folder):
        return folder, find_checkpoint(folder.checkpoints, *(() if name is None else (name,)))


@parameter_class
class TakenCheckpoint:
    """A checkpoint of another run, as a run found it when it began."""

    run: str
    """The other run, as it was named."""
    checkpoint: str
    """The checkpoint's folder."""
    sha256: str
    """The checkpoint's checksum."""

    @classmethod
    def of(cls, run: str) -> "TakenCheckpoint":
        """The checkpoint that `find_run` finds now; ConfigurationError where there is none."""
        folder, path = find_run(Path(run))
        if path is None:
            raise ConfigurationError(f"the run {folder.path} has no checkpoint yet")
        return cls(run=run, checkpoint=str(path), sha256=checksum_of(path))

    def path(self) -> Path:
        """The checkpoint's folder; ConfigurationError where it isn't the same any more."""
        path = Path(self.checkpoint)
        found = checksum_of(path)
        if found != self.sha256:
            what = "has been changed since" if found else "is not there any more"
            raise ConfigurationError(f"the checkpoint {path}, with which the run began, {what}")
        return path


@contextmanager
def offering_last_good(folder: RunFolder) -> Iterator[None]:
    """CheckpointErrors inside, about a checkpoint or a pointer, end in the offer of a good one."""
    try:
        yield
    except CheckpointError as error:
        good = newest_whole(folder.checkpoints)
        if good is None:
            raise
        raise CheckpointError(
            f"{error}; the newest good checkpoint of the run is {good.name}: take it with "
            "--last_good"
        ) from error


def in_newest_run(run: Path) -> tuple[Path, list[Path]]:
    """A path in which a folder of runs is replaced by its newest run; also the runs in it.

    Args:
        run: `EXPERIMENT`, `EXPERIMENT@STEP`, or any other path, which stays as it is.
    """
    folder, step = _split(run)
    runs = runs_in(folder)
    if not runs:
        return run, []
    return (runs[-1] if step is None else Path(f"{runs[-1]}@{step}")), runs


def runs_in(folder: Path) -> list[Path]:
    """The runs right below a folder, in the order in which they were begun."""
    runs = [manifest.parent for manifest in manifests_in(folder)]
    return sorted(runs, key=lambda run: (read_manifest(RunFolder(run))["created"], run.name))


def manifests_in(folder: Path) -> list[Path]:
    """The manifests of the runs right below a folder, without those that are being made."""
    return [
        path for path in folder.expanduser().glob(f"*/{MANIFEST}") if path.parent.name[0] != "."
    ]


def create_run_folder(
    root: Path, name: str, manifest: Json, preset_source: str | None
) -> RunFolder:
    """A new folder under `root/name`, with its manifest and the preset's source already in it.

    What processes that died here have left unfinished is removed.

    Args:
        root: The folder of all experiments.
        name: The experiment's name, one folder name.
        manifest: What `make_manifest` returned.
        preset_source: The preset's source; None for an experiment without a preset.

    Raises:
        ConfigurationError: The folder cannot be written.
    """
    check_name(name)
    parent = root / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(parent)
        unfinished = parent / f"{_unfinished()}{os.getpid()}-{secrets.token_hex(4)}"
        unfinished.mkdir()
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the experiment folder {parent}: {error}; choose another with -ep"
        ) from error
    try:
        if preset_source is not None:
            write_text(RunFolder(unfinished).preset, preset_source)
        write_manifest(RunFolder(unfinished), manifest)
        return RunFolder(_publish(unfinished, parent, manifest))
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def remove_run(folder: RunFolder) -> None:
    """Delete a run; it disappears in one step, and remains after a kill are removed later.

    Raises:
        RunInUseError: A process holds it.
        ConfigurationError: It cannot be deleted.
    """
    parent = folder.path.parent
    try:
        with locked(folder.path):
            gone = Path(tempfile.mkdtemp(prefix=f"{_unfinished()}{os.getpid()}-", dir=parent))
            os.rename(folder.path, gone / folder.path.name)
        shutil.rmtree(gone)
    except OSError as error:
        raise ConfigurationError(
            f"the run {folder.path} cannot be deleted: {error.strerror}"
        ) from error


def check_name(name: str) -> None:
    """Raise `ConfigurationError` unless `name` can be the name of one folder."""
    if not re.fullmatch(r"\w[\w .+=@-]*", name):
        raise ConfigurationError(
            f"the experiment name {name!r} cannot name a folder; use letters, digits and . _ "
            "- + = @"
        )


def _named(run: Path) -> tuple[RunFolder, str | None]:
    """The run's folder and the name of the checkpoint in a path; None where it names none."""
    if str(run).startswith("trained:"):
        # Not at the top: other runs need none of it.
        from coach_rl.runs.trained import unpacked

        run = unpacked(run)
    path, name = _split(run.expanduser().absolute())
    if not os.path.lexists(RunFolder(path).manifest):  # it may be a folder of runs
        path, name = _split(in_newest_run(run)[0].expanduser().absolute())
    if name is not None:
        name = f"step_{name}" if name.isdecimal() else name
    folder = RunFolder(path)
    if not os.path.lexists(folder.manifest):
        folder = RunFolder(path.parent.parent)
        name = path.name
        if path.parent != folder.checkpoints or not os.path.lexists(folder.manifest):
            raise _no_run(run.expanduser().absolute())
    return folder, name


def _split(path: Path) -> tuple[Path, str | None]:
    """A path without `@STEP`, and the step; None where it has none."""
    if path.expanduser().exists() or "@" not in path.name:
        return path, None
    name, _, step = path.name.rpartition("@")
    return path.with_name(name or path.name), step


def _no_run(path: Path) -> ConfigurationError:
    """The error about a path that means no run, with the experiments that there are in it."""
    folder = path if path.exists() else path.with_name(path.name.rpartition("@")[0] or path.name)
    experiments = sorted(each.name for each in folder.glob("*/") if manifests_in(each))
    advice = "`coach runs FOLDER` lists those in a folder"
    meant = _meant(path)
    if meant:
        advice = f"did you mean {meant}?"
    if experiments:
        advice = f"there are runs of the experiments {', '.join(experiments)} in it; name one"
    return ConfigurationError(
        f"{path} is neither a run's folder (with a manifest.json) nor a checkpoint in one; {advice}"
    )


def _meant(path: Path) -> str:
    """The experiment in the usual folder, or the trained agent, of that name; empty: none."""
    name = path.name.rpartition("@")[0] or path.name
    beside = path.parent / EXPERIMENTS / name
    if manifests_in(beside):
        return str(EXPERIMENTS / path.name)
    from coach_rl.runs.trained import PREFIX, trained_policies

    trained = (each.name for each in trained_policies())
    return next((f"{PREFIX}{each}" for each in trained if f"{path}".endswith(f"/{each}")), "")


def _publish(unfinished: Path, parent: Path, manifest: Json) -> Path:
    """Name the folder by level, seed and time; numbered where another run took the same second.

    So runs of an experiment sort by what they are, and those that only repeat another by time.
    """
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    name = f"{folder_name(manifest['level'])}_seed{manifest['task']['seed']}_{stamp}"
    attempt = 1
    while True:
        path = parent / (name if attempt == 1 else f"{name}_{attempt}")
        try:
            os.rename(unfinished, path)
        except OSError:
            if not path.exists():
                raise
            attempt += 1
        else:
            sync(parent)
            return path


def _unfinished() -> str:
    """Beginning of the names of this machine's unfinished run folders; the process follows."""
    return f".new-{socket.gethostname()}-"


def _remove_unfinished(parent: Path) -> None:
    for path in parent.glob(f"{_unfinished()}*"):
        process = path.name.removeprefix(_unfinished()).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def folder_name(level: str) -> str:
    """The level's name as part of a folder's: `MyEnv` of `my_module:MyEnv`, `ALE_Pong-v5`."""
    name = re.sub(r"[^\w.-]+", "_", level.rpartition(":")[2]).strip("._-")
    return name[:_LEVEL_LENGTH] or "level"
