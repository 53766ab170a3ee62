"""Checkpoints: a state tree as a folder, written whole or not at all, that executes no code.

    checkpoints/step_20480/
        tensors.safetensors    every array and tensor of the state
        rows_000001.bin        entries of memories, shared with other checkpoints, see `packing`
        segments.json          which entries are in which of these
        state.json             the tree around them
        checkpoint.json        schema version, checksums of the others, what the runner remembers
    checkpoints/last, best     small JSON files that point to one of them

Arrays come back as numpy arrays, tensors as CPU tensors, each with its dtype, shape and bits. What
a checkpoint holds is not decided here: it is `GraphManager.state_dict()`, and in it the state of
every part by its own `state_dict`.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import coach_rl
from coach_rl.configuration.file_writing import make_folder, sha256_of_file, sync, unused
from coach_rl.configuration.strict_json import (
    MOST_BYTES,
    Json,
    read_json,
    read_sealed,
    require_regular_file,
    require_types,
    require_version,
    sealed,
    to_json,
    write_json,
)
from coach_rl.core.errors import CheckpointError, UnknownNameError
from coach_rl.core.state import State
from coach_rl.runs.packing import (
    NOTHING_STORED,
    Packer,
    Stored,
    Unpacker,
    is_segment,
    segments_json,
)

SCHEMA_VERSION = 5
"""Version of the checkpoint format; raised when another reader could misread it."""

LAST = "last"
BEST = "best"
POINTERS = (LAST, BEST)

UNFINISHED = ".step_*.new-*"
"""Pattern of what is left of a checkpoint that was not written to its end."""

_LEFT_OVER = (UNFINISHED, ".step_*.old-*", *(f".{pointer}.*" for pointer in POINTERS))
_ABOUT = "checkpoint.json"
_STATE = "state.json"
_SEGMENTS = "segments.json"
_TENSORS = "tensors.safetensors"
_NAME = re.compile(r"step_(\d+)(?:_(\d+))?")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was read: the state, and its notes."""

    path: Path
    """Its folder."""
    state: State
    """The dict that `state_dict` returned."""
    notes: Json
    """Notes of the writer, kept beside the state."""
    has_memories: bool = True
    """False if the state has None in place of `Appended` entries."""
    stored: Stored = NOTHING_STORED
    """Its appended entries, which checkpoints after it can share."""
    written_by: str = coach_rl.__version__
    """The version of coach_rl that wrote it."""


def write_checkpoint(
    path: Path,
    state: State,
    notes: Json,
    *,
    earlier: Stored = NOTHING_STORED,
    memories: bool = True,
) -> Stored:
    """Write a state as the new folder `path`.

    Args:
        path: The folder, e.g. from `free_path`; its parent is made where missing.
        state: Dicts with str keys, lists, tuples, arrays, tensors, numbers, strings, booleans,
            None, `Appended`.
        notes: JSON kept beside the state.
        earlier: Entries of a checkpoint that the state continues from; the new one shares them.
        memories: Whether to write what is `Appended`.

    Returns:
        The appended entries of the new checkpoint.

    Raises:
        CheckpointError: The state holds something else, or the disk refuses.
    """
    packer = Packer(path, earlier, memories=memories)
    tree = to_json(packer.pack(state, "state"))
    if len(tree.encode()) > MOST_BYTES:
        raise CheckpointError(
            f"the state has {len(tree):,} characters of plain numbers and text, more than the "
            f"{MOST_BYTES:,} that are read; return arrays from state_dict instead of lists"
        )
    with _written_whole(path) as unfinished:
        sums = packer.write_entries(unfinished)
        save_file(packer.tensors, unfinished / _TENSORS)
        (unfinished / _STATE).write_text(tree, encoding="utf-8")
        layout = {place: segments_json(each.segments) for place, each in packer.entries.items()}
        (unfinished / _SEGMENTS).write_text(json.dumps(layout), encoding="utf-8")
        sums |= {name: sha256_of_file(unfinished / name) for name in (_TENSORS, _STATE, _SEGMENTS)}
        about = {
            "schema_version": SCHEMA_VERSION,
            "coach_rl": coach_rl.__version__,
            "created": datetime.now().astimezone().isoformat(timespec="seconds"),
            "memories": not packer.left_out,
            "sha256": sums,
            "notes": notes,
        }
        (unfinished / _ABOUT).write_text(to_json(sealed(about)), encoding="utf-8")
        shutil.copymode(unfinished / _STATE, unfinished / _TENSORS)  # safetensors makes it 0600
        for name in (_TENSORS, _STATE, _SEGMENTS, _ABOUT):
            sync(unfinished / name)
    return Stored(entries=packer.entries, sums=sums)


def read_checkpoint(path: Path, *, memories: bool = True) -> Checkpoint:
    """Read a checkpoint folder, checking that it is whole.

    Args:
        path: The folder.
        memories: Whether its memories are wanted. Their entries are read only when they are
            loaded; here they are checked, or else left out of the state as None.

    Raises:
        CheckpointError: A file is missing or changed, or the format is of another version.
    """
    about = _about(path, memories=memories)
    try:
        tensors = load_file(path / _TENSORS)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {path / _TENSORS}: {error}") from error
    segments = read_json(path / _SEGMENTS) if memories else {}
    unpacker = Unpacker(path, tensors, segments, about["sha256"])
    try:
        state = unpacker.unpack(read_json(path / _STATE))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path / _STATE} is damaged: {error}") from error
    return Checkpoint(
        path=path,
        state=state,
        notes=about["notes"],
        has_memories=memories and about["memories"],
        stored=Stored(entries=unpacker.entries, sums=about["sha256"]),
        written_by=str(about.get("coach_rl")),
    )


def read_notes(path: Path) -> Json:
    """The notes beside a checkpoint's state, without reading or checking the state.

    Raises:
        CheckpointError: They are missing or damaged, or the format is of another version.
    """
    return _about_file(path)["notes"]


def checksum_of(path: Path) -> str:
    """The checksum of a checkpoint: of the file with those of its others; empty without one."""
    return sha256_of_file(path / _ABOUT) if (path / _ABOUT).is_file() else ""


def free_path(checkpoints: Path, moment: int) -> Path:
    """Return the name of a new checkpoint: `step_2048`, or `step_2048_2` if that is taken."""
    return unused(checkpoints / f"step_{moment}")


def point(checkpoints: Path, pointer: str, name: str | None) -> None:
    """Let `last` or `best` point to a checkpoint of that name; None removes the pointer."""
    if name is None:
        (checkpoints / pointer).unlink(missing_ok=True)
    else:
        write_json(checkpoints / pointer, sealed({"checkpoint": name}))


def pointed(checkpoints: Path, pointer: str) -> str | None:
    """The name of the checkpoint `last` or `best` points to; None where there is none.

    Raises:
        CheckpointError: The pointer is damaged.
    """
    path = checkpoints / pointer
    if not path.exists():
        return None
    document = read_sealed(path, next_step="name a checkpoint instead")
    require_types(document, {"checkpoint": str}, source=str(path))
    return str(document["checkpoint"])


def find_checkpoint(checkpoints: Path, name: str = LAST) -> Path:
    """The folder of a checkpoint by its name or pointer.

    `last` is the latest one, also in a run that was killed after it had been written and before
    the pointer had. `step_20` also names the newest later checkpoint of that step, `step_20_2`,
    which may have taken its place.

    Raises:
        CheckpointError: There is none at all, or the pointer is damaged or points to none.
        UnknownNameError: There is none of that name.
    """
    known = {path.name: path for path in list_checkpoints(checkpoints)}
    if not known:
        raise CheckpointError(f"there is no checkpoint in {checkpoints}; nothing can be resumed")
    if name not in POINTERS:
        if name not in known:
            again = [each for each in known if re.fullmatch(rf"{re.escape(name)}_\d+", each)]
            if again:
                return known[again[-1]]
            raise UnknownNameError(
                "checkpoint", name, [*known, *POINTERS], where=f"in {checkpoints}"
            )
        return known[name]
    target = pointed(checkpoints, name)
    if target is None and name == BEST:
        raise UnknownNameError("checkpoint", name, [*known, LAST], where=f"in {checkpoints}")
    if target is not None and target not in known:
        raise CheckpointError(f"{checkpoints / name} points to {target}, which is not there")
    return known[target] if target is not None and name == BEST else [*known.values()][-1]


def newest_whole(checkpoints: Path) -> Path | None:
    """The newest checkpoint that can be read; None where there is none."""
    for path in reversed(list_checkpoints(checkpoints)):
        try:
            read_checkpoint(path)
        except CheckpointError:
            continue
        return path
    return None


def list_checkpoints(checkpoints: Path) -> list[Path]:
    """Every finished checkpoint, earliest first."""
    if not checkpoints.is_dir():
        return []
    folders = [path for path in checkpoints.iterdir() if _NAME.fullmatch(path.name)]
    return sorted(folders, key=_order)


def steps_of(path: Path) -> int:
    """After how many environment steps a checkpoint was taken."""
    return _order(path)[0]


def remove_checkpoint(path: Path) -> None:
    """Delete a checkpoint; a kill halfway leaves nothing that counts as a checkpoint."""
    doomed = path.parent / f".{path.name}.old-{os.getpid()}"
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def put_aside(damaged: Sequence[Path]) -> None:
    """Rename checkpoints that cannot be read, so that they are none any more and yet not lost."""
    for path in damaged:
        aside = path.with_name(f"damaged_{path.name}")
        shutil.rmtree(aside, ignore_errors=True)
        path.rename(aside)


def begin_checkpoint(path: Path) -> None:
    """Leave a trace of a checkpoint that is about to be written.

    A log that announces a first checkpoint, without any trace of one, means that it was deleted.

    Args:
        path: Its folder, e.g. from `free_path`.
    """
    make_folder(path.parent)
    make_folder(_unfinished(path))


def remove_unfinished(checkpoints: Path, *, but: Path | None = None) -> None:
    """Delete what processes that were killed have left half-written or half-deleted.

    Args:
        checkpoints: The folder of the checkpoints.
        but: The one that is being written; None for none.
    """
    for pattern in _LEFT_OVER:
        for path in checkpoints.glob(pattern):
            if path == but:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@contextmanager
def _written_whole(path: Path) -> Iterator[Path]:
    """A folder to fill, which then becomes the checkpoint `path`, whole or not at all.

    Raises:
        CheckpointError: The disk refuses.
    """
    unfinished = _unfinished(path)
    try:
        begin_checkpoint(path)
        remove_unfinished(path.parent, but=unfinished)
        for left in unfinished.iterdir():  # by a killed process of the same number
            left.unlink()
        yield unfinished
        sync(unfinished)
        unfinished.rename(path)
        sync(path.parent)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot write the checkpoint {path}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _unfinished(path: Path) -> Path:
    return path.parent / f".{path.name}.new-{os.getpid()}"


def _order(path: Path) -> tuple[int, int]:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1]), int(match[2] or 1)


def _about(path: Path, *, memories: bool) -> Json:
    """The file about a checkpoint, once the others, those of memories if wanted, match it."""
    about = _about_file(path)
    for name, expected in about["sha256"].items():
        if Path(name).name != name:
            raise CheckpointError(f"checkpoint {path} names the file {name}, which is not its own")
        if is_segment(name) and not memories:
            continue
        if not (path / name).exists():
            raise CheckpointError(
                f"checkpoint {path} lacks its file {name}; use another checkpoint"
            )
        require_regular_file(path / name)
        if sha256_of_file(path / name) != expected:
            raise CheckpointError(
                f"checkpoint {path} is damaged: {name} does not match its checksum; use "
                "another checkpoint"
            )
    return about


def _about_file(path: Path) -> Json:
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint {path}")
    source = path / _ABOUT
    about = read_sealed(source, next_step="use another checkpoint")
    require_version(about, SCHEMA_VERSION, source=str(source), written_by=about.get("coach_rl"))
    require_types(about, {"sha256": dict, "notes": dict, "memories": bool}, source=str(source))
    require_types(about["sha256"], {_TENSORS: str, _STATE: str, _SEGMENTS: str}, source=str(source))
    return about
