"""JSON without its loopholes, and files that are written whole or not at all.

Strict: no NaN or Infinity tokens (other programs cannot read them) and no key twice in one object.
A number that JSON cannot hold is written as `{"$float": "nan"}`.
"""

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from coach_rl.core.errors import CheckpointError

Json = Any
"""A JSON document: dicts with str keys, lists, strings, finite numbers, booleans, None."""

FLOAT_TAG = "$float"


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
            text, parse_constant=_refuse_constant, object_pairs_hook=_dict_without_duplicates
        )
    except ValueError as error:
        raise CheckpointError(f"{source} is not valid JSON: {error}") from error


def float_to_json(value: float) -> Json:
    """A float as JSON holds it."""
    return float(value) if math.isfinite(value) else {FLOAT_TAG: repr(float(value))}


def float_from_json(text: str) -> float:
    """The number behind a `$float` tag."""
    return float(text)


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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"cannot read {path}: {error}") from error
    return from_json(text, source=str(path))


def write_json(path: Path, document: Json) -> None:
    """Write a document whole or not at all, also when the machine stops in between."""
    write_text(path, to_json(document))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all, also when the machine stops in between."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not a JSON number")


def _dict_without_duplicates(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key '{twice}' stands twice in one object")
    return document
