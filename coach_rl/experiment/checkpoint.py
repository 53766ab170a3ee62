"""Checkpoints: a state tree as a folder, written whole or not at all, that executes no code.

    checkpoints/step_20480/
        tensors.safetensors    every array and tensor of the state
        state.json             the tree around them
        checkpoint.json        schema version, checksums of the two, what the runner remembers
    checkpoints/last, best     small JSON files that point to one of them

Arrays come back as numpy arrays, tensors as CPU tensors, each with its dtype, shape and bits.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from coach_rl.core.errors import CheckpointError, UnknownNameError
from coach_rl.core.state import State
from coach_rl.experiment.strict_json import (
    FLOAT_TAG,
    Json,
    float_from_json,
    float_to_json,
    read_json,
    sync_folder,
    to_json,
    write_json,
)

SCHEMA_VERSION = 4
"""Version of the checkpoint format; raised when an older reader could misread it."""

LAST = "last"
BEST = "best"
POINTERS = (LAST, BEST)

UNFINISHED = ".step_*.new-*"
"""Pattern of what is left of a checkpoint that was not written to its end."""

_ABOUT = "checkpoint.json"
_STATE = "state.json"
_TENSORS = "tensors.safetensors"
_KINDS = {"$array": "array", "$scalar": "scalar", "$tensor": "tensor"}
_TUPLE = "$tuple"
_NAME = re.compile(r"step_(\d+)(?:_(\d+))?")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was read: the state, and what was noted beside it."""

    path: Path
    """Its folder."""
    state: State
    """The dict that `state_dict` returned."""
    notes: Json
    """Notes of the writer, kept beside the state."""


def write_checkpoint(path: Path, state: State, notes: Json) -> None:
    """Write a state as the new folder `path`.

    Args:
        path: The folder, e.g. from `free_path`; its parent is made where missing.
        state: Dicts with str keys, lists, tuples, arrays, tensors, numbers, strings, booleans,
            None.
        notes: JSON kept beside the state.

    Raises:
        CheckpointError: The state holds something else, or the disk refuses.
    """
    tensors: dict[str, torch.Tensor] = {}
    tree = _Packer(tensors).pack(state, "state")
    unfinished = path.parent / f".{path.name}.new-{os.getpid()}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        save_file(tensors, unfinished / _TENSORS)
        (unfinished / _STATE).write_text(to_json(tree), encoding="utf-8")
        about = {
            "schema_version": SCHEMA_VERSION,
            "created": datetime.now().astimezone().isoformat(timespec="seconds"),
            "sha256": {name: _sha256(unfinished / name) for name in (_TENSORS, _STATE)},
            "notes": notes,
        }
        (unfinished / _ABOUT).write_text(to_json(about), encoding="utf-8")
        for name in (_TENSORS, _STATE, _ABOUT):
            _sync_file(unfinished / name)
        sync_folder(unfinished)
        unfinished.rename(path)
        sync_folder(path.parent)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot write the checkpoint {path}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint folder, checking that it is whole.

    Raises:
        CheckpointError: A file is missing or changed, or the format is of another version.
    """
    notes = read_notes(path, checksums=True)
    try:
        tensors = load_file(path / _TENSORS)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {path / _TENSORS}: {error}") from error
    state = _unpack(read_json(path / _STATE), tensors, path / _STATE)
    return Checkpoint(path=path, state=state, notes=notes)


def read_policies(path: Path) -> State:
    """Agents and clock of a checkpoint folder, without their memories and all of training.

    Args:
        path: The checkpoint's folder.

    Returns:
        `agents`, each its state without what stands under `memory`, and `clock`.

    Raises:
        CheckpointError: A file is missing or changed, or the format is of another version.
    """
    read_notes(path, checksums=True)
    tree = read_json(path / _STATE)
    try:
        wanted = {
            "agents": _without_memories(tree["agents"]),
            "clock": tree["training"]["clock"],
        }
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path / _STATE} holds no state of a run: {error}") from error
    try:
        with safe_open(path / _TENSORS, framework="pt") as tensors:
            read = {name: tensors.get_tensor(name) for name in _named_in(wanted)}
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot read {path / _TENSORS}: {error}") from error
    state: State = _unpack(wanted, read, path / _STATE)
    return state


def read_notes(path: Path, *, checksums: bool = False) -> Json:
    """The notes beside a checkpoint's state, without reading the state.

    Args:
        path: The checkpoint's folder.
        checksums: Whether to check that the state is whole.

    Raises:
        CheckpointError: A file is missing or changed, or the format is of another version.
    """
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint {path}")
    about = read_json(path / _ABOUT)
    version = about.get("schema_version") if isinstance(about, dict) else None
    if version != SCHEMA_VERSION:
        raise CheckpointError(
            f"checkpoint {path} has schema version {version}, this version of coach_rl reads "
            f"{SCHEMA_VERSION}"
        )
    for name, expected in about["sha256"].items() if checksums else ():
        if not (path / name).is_file():
            raise CheckpointError(
                f"checkpoint {path} lacks its file {name}; use another checkpoint"
            )
        if _sha256(path / name) != expected:
            raise CheckpointError(
                f"checkpoint {path} is damaged: {name} does not match its checksum; use "
                "another checkpoint"
            )
    return about["notes"]


def free_path(checkpoints: Path, environment_steps: int) -> Path:
    """Return the name of a new checkpoint: `step_2048`, or `step_2048_2` if that is taken."""
    path = checkpoints / f"step_{environment_steps}"
    attempt = 2
    while path.exists():
        path = checkpoints / f"step_{environment_steps}_{attempt}"
        attempt += 1
    return path


def point(checkpoints: Path, pointer: str, name: str | None) -> None:
    """Let `last` or `best` point to a checkpoint of that name; None removes the pointer."""
    if name is None:
        (checkpoints / pointer).unlink(missing_ok=True)
    elif pointed(checkpoints, pointer) != name:
        write_json(checkpoints / pointer, {"checkpoint": name})


def pointed(checkpoints: Path, pointer: str) -> str | None:
    """The name of the checkpoint `last` or `best` points to; None where there is none."""
    if not (checkpoints / pointer).is_file():
        return None
    document = read_json(checkpoints / pointer)
    if not isinstance(document, dict) or not isinstance(document.get("checkpoint"), str):
        raise CheckpointError(f"{checkpoints / pointer} does not name a checkpoint")
    return str(document["checkpoint"])


def find_checkpoint(checkpoints: Path, name: str = LAST) -> Path:
    """The folder of a checkpoint by its name or pointer.

    Without a pointer, `last` is the latest one: of a run that was killed after its first checkpoint
    had been written, and before the pointer had.

    Raises:
        CheckpointError: There is none at all.
        UnknownNameError: There is none of that name.
    """
    known = {path.name: path for path in list_checkpoints(checkpoints)}
    pointers = {
        pointer: target for pointer in POINTERS if (target := pointed(checkpoints, pointer))
    }
    if not known:
        raise CheckpointError(f"there is no checkpoint in {checkpoints}; nothing can be resumed")
    if LAST not in pointers:
        pointers[LAST] = [*known][-1]
    target = pointers.get(name, name)
    if target not in known:
        raise UnknownNameError(f"checkpoint in {checkpoints}", target, [*known, *pointers])
    return known[target]


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
    """Delete a checkpoint; what is left of one deleted halfway is never taken for a checkpoint."""
    doomed = path.parent / f".{path.name}.old-{os.getpid()}"
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _order(path: Path) -> tuple[int, int]:
    match = _NAME.fullmatch(path.name)
    assert match is not None
    return int(match[1]), int(match[2] or 1)


class _Packer:
    """Takes arrays and tensors out of a tree and leaves their names in it."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self._tensors = tensors
        self._storages: set[int] = set()

    def pack(self, value: Any, path: str) -> Json:
        match value:
            case torch.Tensor():
                return {"$tensor": self._keep(value.detach().cpu(), path)}
            case np.generic():
                return {"$scalar": self._keep(_as_tensor(np.asarray(value), path), path)}
            case np.ndarray():
                return {"$array": self._keep(_as_tensor(value, path), path)}
            case None | bool() | int() | str() if not isinstance(value, Enum):
                return value
            case float():
                return float_to_json(value)
            case list():
                return [self.pack(part, f"{path}/{index}") for index, part in enumerate(value)]
            case tuple():
                return {_TUPLE: self.pack(list(value), path)}
            case dict():
                return {
                    key: self.pack(part, f"{path}/{key}") for key, part in self._items(value, path)
                }
        raise CheckpointError(
            f"{path} is a {type(value).__name__}, which a checkpoint cannot hold; "
            "state_dict may return dicts, lists, arrays, tensors, numbers, strings, booleans "
            "and None"
        )

    def _items(self, value: dict[Any, Any], path: str) -> Iterator[tuple[str, Any]]:
        for key, part in value.items():
            if not isinstance(key, str) or key.startswith("$"):
                raise CheckpointError(
                    f"{path} has the key {key!r}; keys are strings without a leading $"
                )
            yield key, part

    def _keep(self, tensor: torch.Tensor, path: str) -> str:
        tensor = tensor.contiguous()
        storage = tensor.untyped_storage().data_ptr()
        if storage in self._storages:
            tensor = tensor.clone()
        self._storages.add(storage)
        self._tensors[path] = tensor
        return path


def _as_tensor(array: np.ndarray[Any, Any], path: str) -> torch.Tensor:
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    if not native.flags.writeable:
        native = native.copy()
    try:
        return torch.from_numpy(native)
    except TypeError as error:
        raise CheckpointError(
            f"{path} is an array of dtype {array.dtype}, which a checkpoint cannot hold"
        ) from error


def _unpack(document: Json, tensors: dict[str, torch.Tensor], source: Path) -> Any:
    match document:
        case list():
            return [_unpack(part, tensors, source) for part in document]
        case dict():
            tag, content = next(iter(document.items()), ("", ""))
            if tag in _KINDS:
                if content not in tensors:
                    raise CheckpointError(
                        f"{source} names the tensor '{content}', which is missing"
                    )
                return _restore(tag, tensors[content])
            if tag == _TUPLE:
                return tuple(_unpack(content, tensors, source))
            if tag == FLOAT_TAG:
                return float_from_json(content)
            return {key: _unpack(part, tensors, source) for key, part in document.items()}
    return document


def _without_memories(agents: Json) -> Json:
    """The states of agents, and of the members of groups, without their memories."""
    if not isinstance(agents, dict):
        return agents
    return {key: _without_memories(part) for key, part in agents.items() if key != "memory"}


def _named_in(document: Json) -> Iterator[str]:
    """The names of the tensors that a tree refers to."""
    match document:
        case dict():
            for key, part in document.items():
                if key in _KINDS:
                    yield part
                else:
                    yield from _named_in(part)
        case list():
            for part in document:
                yield from _named_in(part)


def _restore(tag: str, tensor: torch.Tensor) -> Any:
    if tag == "$tensor":
        return tensor
    array = tensor.numpy()
    return array[()] if tag == "$scalar" else array


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
