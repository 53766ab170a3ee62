"""Packing of state: a tree of plain JSON, and the tensors and entries of memories beside it."""

import itertools
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coach_rl.configuration.strict_json import (
    FLOAT_TAG,
    Json,
    float_from_json,
    float_to_json,
)
from coach_rl.core.errors import CheckpointError
from coach_rl.core.records import Array, IntArray
from coach_rl.core.state import Appended
from coach_rl.runs.segments import (
    Segment,
    Stored,
    StoredEntries,
    form_of,
    segment_file,
    segments_json,
    share_file,
    shared,
    stored_entries,
    write_segment,
)

_KEPT_ASIDE = ("$array", "$scalar", "$tensor")
_TUPLE = "$tuple"
_APPENDED = "$appended"


class Packer:
    """Takes arrays, tensors and appended entries out of a tree and leaves their names in it.

    Args:
        folder: The checkpoint's.
        earlier: Those of an earlier checkpoint.
        memories: Whether appended entries are kept.
    """

    def __init__(self, folder: Path, earlier: Stored, *, memories: bool) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.entries: dict[str, StoredEntries] = {}
        self.left_out = False
        self._storages: set[int] = set()
        self._folder, self._earlier, self._memories = folder, earlier, memories
        self._shared: list[Path] = []
        self._new: list[tuple[str, Appended, IntArray]] = []
        self._numbers = itertools.count(1 + earlier.last_number)

    def pack(self, value: object, path: str) -> Json:
        """The tree as JSON; what is at `path` in it.

        Raises:
            CheckpointError: It holds something that a checkpoint cannot.
        """
        match value:
            case Appended():
                return {_APPENDED: self._pack_appended(value, path)}
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

    def write_entries(self, folder: Path) -> dict[str, str]:
        """Write what is new of the entries and link the rest; checksums by file."""
        sums = {}
        for source in self._shared:
            share_file(source, folder / source.name)
            sums[source.name] = self._earlier.sums[source.name]
        for file, appended, since in self._new:
            sums[file] = write_segment(folder / file, appended, since)
        return sums

    def _pack_appended(self, appended: Appended, path: str) -> Json:
        """Decide which segments have the entries."""
        if not self._memories:
            self.left_out = True
            return None
        stored = self._earlier.entries.get(path)
        segments, since = shared(appended, stored)
        if stored is not None:
            self._shared += [stored.folder / segment.file for segment in segments]
        if (since < appended.ends).any():
            file = segment_file(next(self._numbers))
            self._new.append((file, appended, since))
            segments = (*segments, Segment(file=file, begins=since, ends=appended.ends))
        form = form_of(appended)
        self.entries[path] = stored_entries(self._folder, form, segments_json(segments))
        return self.pack(form, path)

    def _items(self, value: dict[object, object], path: str) -> Iterator[tuple[str, object]]:
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
        self.tensors[path] = tensor
        return path


class Unpacker:
    """Puts arrays, tensors and appended entries back into a tree.

    Args:
        folder: The checkpoint's.
        tensors: Tensors by name.
        segments: Segments of appended entries by their place; the entries of others are left out.
    """

    def __init__(
        self, folder: Path, tensors: Mapping[str, torch.Tensor], segments: Mapping[str, Json]
    ) -> None:
        self.entries: dict[str, StoredEntries] = {}
        self._folder, self._tensors, self._segments = folder, tensors, segments

    def unpack(self, document: Json, path: str = "state") -> Any:
        """The tree that `pack` was given; memories that were left out are None.

        Raises:
            CheckpointError: A tensor is missing.
        """
        match document:
            case list():
                return [self.unpack(part, f"{path}/{i}") for i, part in enumerate(document)]
            case dict():
                tag, content = next(iter(document.items()), ("", ""))
                if tag in _KEPT_ASIDE:
                    return _restore(tag, self._tensor(content))
                if tag == _TUPLE:
                    return tuple(self.unpack(content, path))
                if tag == FLOAT_TAG:
                    return float_from_json(content)
                if tag == _APPENDED:
                    return self._appended(content, path)
                return {key: self.unpack(part, f"{path}/{key}") for key, part in document.items()}
        return document

    def _appended(self, content: Json, path: str) -> StoredEntries | None:
        if path not in self._segments:
            return None
        form = self.unpack(content)
        self.entries[path] = stored_entries(self._folder, form, self._segments[path])
        return self.entries[path]

    def _tensor(self, name: str) -> torch.Tensor:
        if name not in self._tensors:
            raise CheckpointError(f"{self._folder} names the tensor '{name}', which is missing")
        return self._tensors[name]


def _as_tensor(array: Array, path: str) -> torch.Tensor:
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    if not native.flags.writeable:
        native = native.copy()
    try:
        return torch.from_numpy(native)
    except TypeError as error:
        raise CheckpointError(
            f"{path} is an array of dtype {array.dtype}, which a checkpoint cannot hold"
        ) from error


def _restore(tag: str, tensor: torch.Tensor) -> object:
    if tag == "$tensor":
        return tensor
    array = tensor.numpy()
    return array[()] if tag == "$scalar" else array
