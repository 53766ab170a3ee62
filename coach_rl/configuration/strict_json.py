"""JSON without its loopholes, and files that are written whole or not at all.

Strict: no NaN or Infinity tokens (other programs cannot read them) and no key twice in one object.
A number that JSON cannot hold is written as `{"$float": "nan"}`. A sealed document carries a
checksum of its content, so a changed digit is noticed, and a changed layout is not.
"""

import json
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coach_rl.configuration.file_writing import replacing, sha256_of
from coach_rl.core.errors import CheckpointError

Json = Any
"""A JSON document: dicts with str keys, lists, strings, finite numbers, booleans, None."""

MOST_BYTES = 64_000_000
"""Size of the largest text file that is read; no run writes one that comes near it."""
FLOAT_TAG = "$float"
_MOST_DIGITS = 100
"""Digits of the largest whole number that is read; random streams have 39."""
_KINDS = {bool: "true or false", dict: "an object", list: "a list", str: "a text"}
"""Names of the types of JSON but null, for errors."""
SEAL = "checksum"
"""The key under which a sealed document carries its checksum."""


def to_json(document: Json) -> str:
    """The document as text, two spaces an indent, with a line end."""
    return json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def from_json(text: str, *, source: str) -> Json:
    """The document in `text`.

    Args:
        text: Strict JSON.
        source: Where it came from, for the error.

    Raises:
        CheckpointError: The text is not strict JSON.
    """
    try:
        return json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_short_int,
            object_pairs_hook=_dict_without_duplicates,
        )
    except json.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno} column {error.colno}"
        raise CheckpointError(f"{source} is not valid JSON: {where}") from error
    except _NotStrictError as error:
        raise CheckpointError(f"{source} is not valid JSON: {error}") from error
    except RecursionError as error:
        raise CheckpointError(f"{source} is not valid JSON: it is nested too deeply") from error


def float_to_json(value: float) -> Json:
    """A float as JSON holds it."""
    return float(value) if math.isfinite(value) else {FLOAT_TAG: repr(float(value))}


def plain_json(value: object) -> Json:
    """Nested dicts, lists and numbers with every float as JSON holds it."""
    match value:
        case dict():
            return {key: plain_json(part) for key, part in value.items()}
        case list() | tuple():
            return [plain_json(part) for part in value]
        case float():
            return float_to_json(value)
    return value


def read_json(path: Path) -> Json:
    """The document in a file; CheckpointError when it is missing or not strict JSON."""
    return from_json(read_text(path), source=str(path))


def read_text(path: Path) -> str:
    """The text of a file; CheckpointError when there is none, or none that can be read."""
    require_regular_file(path)
    if path.stat().st_size > MOST_BYTES:
        raise CheckpointError(
            f"{path} has {path.stat().st_size:,} bytes, more than the {MOST_BYTES:,} that are read"
        )
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CheckpointError(
            f"{path} is damaged: byte {error.start} and what follows is no text"
        ) from error


def require_regular_file(path: Path) -> None:
    """Raise `CheckpointError` for what cannot be read as a file; a named pipe would hang."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        kind = "folder" if stat.S_ISDIR(mode) else "device, pipe or socket"
        raise CheckpointError(f"{path} should be a file and is a {kind}")


def sealed(document: dict[str, Json]) -> dict[str, Json]:
    """The document with the checksum of its content."""
    content = {key: part for key, part in document.items() if key != SEAL}
    return {**content, SEAL: _checksum(content)}


def read_sealed(path: Path, *, next_step: str) -> dict[str, Json]:
    """The document in a file, without its checksum, which the user may have deleted.

    Args:
        path: The file.
        next_step: What to do about one that has been changed, for the error.

    Raises:
        CheckpointError: There is no JSON object in it, or not the one that was written.
    """
    document = read_json(path)
    if not isinstance(document, dict):
        raise CheckpointError(f"{path} is damaged: it holds no JSON object; {next_step}")
    given = document.pop(SEAL, None)
    if given is not None and given != _checksum(document):
        raise CheckpointError(
            f"{path} is damaged or has been edited: its content does not match its checksum; "
            f"{next_step}"
        )
    return document


def require_types(
    document: Mapping[str, Json],
    types: Mapping[str, type | tuple[type, ...]],
    *,
    source: str,
) -> None:
    """Raise `CheckpointError` unless a document has these keys, each with a value of its type.

    Args:
        document: A JSON object.
        types: Types by key.
        source: Where the document came from, for the error.
    """
    missing = [key for key in types if key not in document]
    if missing:
        raise CheckpointError(f"{source} lacks {', '.join(missing)}")
    for key, expected in types.items():
        if not isinstance(document[key], expected):
            kinds = expected if isinstance(expected, tuple) else (expected,)
            allowed = " or ".join(_KINDS.get(kind, "null") for kind in kinds)
            raise CheckpointError(
                f"{source} is damaged: '{key}' is {_excerpt(document[key])}; allowed is {allowed}"
            )


def require_version(
    document: Mapping[str, Json], known: int, *, source: str, written_by: Json
) -> None:
    """Raise `CheckpointError` unless a document is of the version that is read here.

    Args:
        document: Has its own `schema_version`.
        known: The version read here.
        source: Where the document came from, for the error.
        written_by: The version of coach_rl that wrote it; None where that is not known.
    """
    version = document.get("schema_version")
    if version == known and not isinstance(version, bool):
        return
    by = f"coach_rl {written_by}" if isinstance(written_by, str) else "the coach_rl that wrote it"
    is_newer = isinstance(version, int) and version > known
    advice = f"upgrade to {by} or later" if is_newer else f"use {by}"
    raise CheckpointError(
        f"{source} has schema version {_excerpt(version)}, this version of coach_rl reads {known}; "
        f"{advice}"
    )


def write_json(path: Path, document: Json) -> None:
    """Write a document whole or not at all, also when the machine stops in between."""
    write_text(path, to_json(document))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all, also when the machine stops in between."""
    with replacing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


class _NotStrictError(ValueError):
    """JSON that other programs cannot read, or read differently."""


def _refuse_constant(token: str) -> float:
    raise _NotStrictError(f"{token} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _NotStrictError(f"{text[:40]} is larger than any number that is read")
    return number


def _short_int(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise _NotStrictError(f"a number of {len(text):,} digits is too long")
    return int(text)


def _dict_without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NotStrictError(f"the key '{twice}' stands twice in one object")
    return document


def _checksum(content: dict[str, Json]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False, separators=(",", ":"))
    return sha256_of(text)


def _excerpt(value: Json) -> str:
    """The beginning of a value, for an error in one line."""
    text = "null" if value is None else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
