"""Rename what has moved in recorded runs, without training: trained agents, results, fixtures.

    python benchmarks/rewrite_records.py [--moves TABLE] [ARCHIVE ...]      # default: all

Manifests name classes and functions, and keep the text of a preset. `.ci/moves.toml` lists what has
moved or gone since the archives were written:

    [modules]                    # also in the texts of presets; whatever is below them moves along
    "coach_rl.agents.planning" = "coach_rl.extensions.planning"
    [names]
    "coach_rl.core.goals:OptionSpace" = "coach_rl.core.options:OptionSpace"
    [texts]                      # in the texts of presets alone
    "    recurrence: Recurrence" = "    recurrence: LayerKind"
    [renamed_fields]             # where they are not removed
    "ReplayMemoryParameters.sequences" = "draws"
    [removed_fields]             # with the values under which nothing changes
    "LevelParameters.certify" = "null"             # as JSON
    [listed_fields]              # a value or None became a tuple of one or none, in another field
    "LevelParameters.curriculum" = "changes"
    [added_fields]               # with the values that stand for what documents without them mean
    "PPOAgentParameters.scale_actions" = "false"
    [gathered_fields]            # of the parts in a list, as an object in a field of its owner
    "LevelParameters.below" = {field = "arrangement", type = "coach_rl:LevelGraph"}
    [grouped_fields]             # that became arguments of an object, which is in a list
    "LevelParameters.testing_rate" = {field = "parts", type = "coach_rl:Test", argument = "rate"}

A gathered field is a mapping from the names of the parts to their values; of flags, a list of the
names of those that have it. Where all parts have the value of `removed_fields` there is none. So it
is with grouped fields of one type.

A name that `coach_rl` offers becomes `coach_rl:NAME`. The files of an archive, their order and
their packing stay as they are; checksums are computed again. Manifests of trained agents get every
field that they lack, so that loading them warns of none.
"""

import argparse
import io
import json
import lzma
import re
import sys
import tarfile
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from coach_rl.configuration.file_writing import sha256_of
from coach_rl.configuration.parameters_json import decode, encode, reference, resolve
from coach_rl.configuration.strict_json import SEAL, sealed, to_json
from coach_rl.configuration.trust import PRESET_MODULE, TAGS
from coach_rl.configuration.user_modules import preset_module
from coach_rl.core.errors import CoachWarning
from coach_rl.core.lazy_names import is_below_package
from coach_rl.runs.folder import ONLY_POLICY

CHECKOUT = Path(__file__).resolve().parent.parent
ARCHIVES = ("coach_rl/trained", "benchmarks/results/runs", "tests/fixtures/runs")
MANIFEST = "manifest.json"
PRESET = "preset.py"

Json = Any
Files = dict[str, bytes]


@dataclass(frozen=True)
class Moves:
    """What has moved or gone."""

    modules: Mapping[str, str]
    """New paths of modules by earlier ones."""
    names: Mapping[str, str]
    """New `module:name` by earlier ones."""
    texts: Mapping[str, str]
    """New pieces of the texts of presets by earlier ones."""
    renamed_fields: Mapping[str, str]
    """New names of fields by earlier ones, `Class.field`."""
    removed_fields: Mapping[str, Json]
    """Values of fields, by `Class.field`, without which a class behaves the same."""
    listed_fields: Mapping[str, str]
    """Fields that have a tuple of one or none for a value or None, by `Class.field` of that."""
    added_fields: Mapping[str, Json]
    """Values of fields, by `Class.field`, that documents without them mean."""
    gathered_fields: Mapping[str, Mapping[str, str]]
    """The field of the owner, and the type of the object in it, of the `Class.field` of parts."""
    grouped_fields: Mapping[str, Mapping[str, str]]
    """The field, the type of the object in its list, and the argument, of `Class.field`."""

    @classmethod
    def read(cls, file: Path) -> "Moves":
        """The moves in a file."""
        document = tomllib.loads(file.read_text("utf-8"))
        parts = {each.name: document.get(each.name, {}) for each in fields(cls)}
        for name in ("removed_fields", "added_fields"):
            parts[name] = {path: json.loads(value) for path, value in parts[name].items()}
        return cls(**parts)

    def module(self, name: str) -> str:
        """The path of a module now."""
        for old in sorted(self.modules, key=len, reverse=True):
            if name == old or name.startswith(f"{old}."):
                return self.modules[old] + name.removeprefix(old)
        return name

    def text(self, source: str) -> str:
        """A preset's text with what it imports named as now."""
        for old, new in self.texts.items():
            source = source.replace(old, new)
        return re.sub(r"\bcoach_rl(?:\.\w+)+", lambda found: self.module(found[0]), source)

    def name(self, name: str) -> str:
        """The name of a class or function now: public where it is."""
        module, _, rest = self.names.get(name, name).partition(":")
        moved = f"{self.module(module)}:{rest}"
        return reference(resolve(moved)) if is_below_package(moved) else moved

    def document(self, document: Json) -> Json:
        """Parameters with classes and functions named as now, without removed fields."""
        match document:
            case dict():
                kept = self._with_listed_fields(self._grouped(self._gathered(document)))
                kept = self._with_fields_of_now(kept)
                return {
                    key: self.name(part) if key in TAGS else self.document(part)
                    for key, part in kept.items()
                }
            case list():
                return [self.document(part) for part in document]
        return document

    def _gathered(self, document: dict[str, Json]) -> dict[str, Json]:
        """A document with what its parts in lists had, and it has now."""
        found = dict(document)
        for path, place in self.gathered_fields.items():
            kind, _, field = path.partition(".")
            for key, parts in document.items():
                having = [each for each in _listed(parts, kind) if field in each]
                if all(each[field] == self.removed_fields[path] for each in having):
                    continue
                values = {each["name"]: each[field] for each in having if each[field] is not None}
                flags = all(isinstance(value, bool) for value in values.values())
                names = [name for name, value in values.items() if value]
                made = found.setdefault(place["field"], {"$type": place["type"]})
                made[field] = names if flags else values
                found[key] = [
                    {name: value for name, value in each.items() if name != field}
                    for each in found[key]
                ]
        return found

    def _grouped(self, document: dict[str, Json]) -> dict[str, Json]:
        """A document with objects in lists for fields that became their arguments."""
        kind = str(document.get("$type", "")).rpartition(":")[2]
        found = dict(document)
        made = dict[tuple[str, str], dict[str, Json]]()
        changed = set[tuple[str, str]]()
        for path, place in self.grouped_fields.items():
            owner, _, name = path.partition(".")
            if owner != kind or name not in document:
                continue
            value = found.pop(name)
            key = place["field"], place["type"]
            made.setdefault(key, {"$type": place["type"]})[place["argument"]] = value
            if value != self.removed_fields[path]:
                changed.add(key)
        for field, type_name in sorted(changed):
            found[field] = [*found.get(field, []), made[field, type_name]]
        return found

    def _with_listed_fields(self, document: dict[str, Json]) -> dict[str, Json]:
        kind = str(document.get("$type", "")).rpartition(":")[2]
        found = dict[str, Json]()
        for key, part in document.items():
            field = self.listed_fields.get(f"{kind}.{key}")
            values = [] if part is None else [part]
            found[field or key] = part if field is None else values
        return found

    def _with_fields_of_now(self, document: dict[str, Json]) -> dict[str, Json]:
        kind = str(document.get("$type", "")).rpartition(":")[2]
        added = {
            path.rpartition(".")[2]: value
            for path, value in self.added_fields.items()
            if path.startswith(f"{kind}.")
        }
        gone = {key: f"{kind}.{key}" for key in document if f"{kind}.{key}" in self.removed_fields}
        kept = {
            self.renamed_fields.get(f"{kind}.{key}", key): part
            for key, part in document.items()
            if key not in gone or part != self.removed_fields[gone[key]]
        }
        return {**kept, **{key: value for key, value in added.items() if key not in kept}}


def _listed(parts: Json, kind: str) -> list[dict[str, Json]]:
    """The documents of a class in a list; none where it is no list of them."""
    named = parts if isinstance(parts, list) else []
    return [
        each
        for each in named
        if isinstance(each, dict) and str(each.get("$type", "")).endswith(f":{kind}")
    ]


def completed(manifest: Json) -> Json:
    """A manifest with every field of its parameters, and the dtypes of its spaces."""
    with warnings.catch_warnings(action="ignore", category=CoachWarning):
        parts = {key: encode(decode(manifest[key])) for key in ("parameters", "task")}
    return {**manifest, **parts, "spaces": _typed(manifest["spaces"])}


def _typed(space: Json) -> Json:
    """The JSON of a space, in which Discrete parts have their dtype."""
    if isinstance(space, dict):
        parts = {key: _typed(part) for key, part in space.items()}
        return {**parts, "dtype": "int64"} if parts.get("kind") == "Discrete" else parts
    return space


def rewritten(files: Files, moves: Moves) -> Files:
    """The files of an archive, of one run or of several in folders, with names of now."""
    changed = dict(files)
    for path in files:
        if path.rpartition("/")[2] == MANIFEST:
            preset = path.removesuffix(MANIFEST) + PRESET
            text = files[preset].decode() if preset in files else None
            manifest, source = rewritten_run(json.loads(files[path]), text, moves)
            changed[path] = to_json(manifest).encode()
            if source is not None:
                changed[preset] = source.encode()
    return changed


def rewritten_run(manifest: Json, source: str | None, moves: Moves) -> tuple[Json, str | None]:
    """A run's manifest, and the text of its preset, with names of now."""
    was_sealed = manifest.pop(SEAL, None) is not None
    for key in ("parameters", "task"):
        manifest[key] = moves.document(manifest[key])
    manifest["graph_manager"] = moves.name(manifest["graph_manager"])
    if ONLY_POLICY in manifest:
        manifest = completed(manifest)
    if source is not None and (new := moves.text(source)) != source:
        entry = manifest["preset"]
        module = preset_module(Path(entry["file"]), new)
        text = json.dumps(manifest).replace(f'"{entry["module"]}', f'"{module}')
        manifest = json.loads(text)
        manifest["preset"]["sha256"] = sha256_of(new)
        source = new
    assert PRESET_MODULE in json.dumps(manifest.get("preset") or PRESET_MODULE)
    return (sealed(manifest) if was_sealed else manifest), source


def rewrite_zip(archive: Path, moves: Moves) -> bool:
    """Rewrite a ZIP archive; True where something changed."""
    with ZipFile(archive) as packed:
        entries = packed.infolist()
        files = {entry.filename: packed.read(entry) for entry in entries}
    changed = rewritten(files, moves)
    if changed == files:
        return False
    with ZipFile(archive, "w") as packed:
        for entry in entries:
            packed.writestr(entry, changed[entry.filename], compress_type=entry.compress_type)
    return True


def rewrite_tar(archive: Path, moves: Moves) -> bool:
    """Rewrite a fixture; True where something changed."""
    sys.path.insert(0, str(CHECKOUT / "tests/fixtures"))
    from write_fixtures import PACKING  # type: ignore[import-not-found]

    with tarfile.open(archive) as packed:
        members = packed.getmembers()
        files = {each.name: file.read() for each in members if (file := packed.extractfile(each))}
    changed = rewritten(files, moves)
    if changed == files:
        return False
    with (
        lzma.open(archive, "w", filters=[PACKING]) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as packed,
    ):
        for member in members:
            content = changed.get(member.name, b"")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return True


def archives() -> Iterator[Path]:
    """All archives of runs in the repository."""
    for folder in ARCHIVES:
        files = (CHECKOUT / folder).rglob("*")
        yield from sorted(file for file in files if file.suffix in (".zip", ".xz"))


def main() -> None:
    """Rewrite the archives that are named; without names all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moves", type=Path, default=CHECKOUT / ".ci/moves.toml", help="the table")
    parser.add_argument("archives", type=Path, nargs="*", help="default: all of the repository")
    given = parser.parse_args()
    moves = Moves.read(given.moves)
    for archive in given.archives or archives():
        rewrite = rewrite_zip if archive.suffix == ".zip" else rewrite_tar
        try:
            changed = rewrite(archive, moves)
        except Exception as error:
            raise SystemExit(f"{archive}: {error}") from error
        print(f"{'rewritten' if changed else 'unchanged':10} {archive.name}", flush=True)


if __name__ == "__main__":
    main()
