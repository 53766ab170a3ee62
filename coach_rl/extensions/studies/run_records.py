"""The records of finished runs in one file: all that tables are made of, without checkpoints.

    write_records(Path("walks.zip"), "walks", [run.folder for run in runs])
    unpack_records(Path("walks.zip"), Path("experiments"))

Unpacked runs are done: they are counted, compared and drawn like any others, but nothing continues
from them. Records leave out on whose machine a run was made: command line, paths and host.
"""

import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from coach_rl.configuration.strict_json import MOST_BYTES, Json, sealed, to_json
from coach_rl.core.errors import CheckpointError, ConfigurationError, require
from coach_rl.extensions.studies.scores import later_evaluations, read_scores
from coach_rl.runs.folder import MANIFEST, ONLY_RECORDS, RunFolder, check_name, read_manifest

_ENTRY = re.compile(
    r"(?P<name>[^/.][^/]*)/(?P<run>[^/.][^/]*)/"
    r"(?P<file>manifest\.json|summary\.json|log\.jsonl|evaluations/[^/.][^/]*\.json)"
)
MOST_ENTRIES = 100_000
MOST_BYTES_IN_ALL = 2_000_000_000
"""Size of the largest archive that is unpacked; records of a run have 10 kB to some MB."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of each entry, so that the same runs make the same file."""


def write_records(archive: Path, name: str, runs: Sequence[RunFolder]) -> None:
    """Write the records of finished runs, in place of an archive that holds no others.

    Args:
        archive: The file.
        name: The experiment that they are of.
        runs: Their folders.

    Raises:
        ConfigurationError: The file cannot be written, or holds runs that would be lost.
        CheckpointError: A manifest is damaged.
    """
    check_name(name)
    named = _named(runs)
    lost = sorted(
        {entry["run"] for entry in _entries(archive)} - set(named) if archive.exists() else ()
    )
    if lost:
        raise ConfigurationError(
            f"{archive} holds {len(lost)} runs that would be lost, such as {lost[0]}; "
            f"`coach study import {archive}` brings them here first"
        )
    unfinished = archive.with_name(f".{archive.name}.unfinished")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as target:
            for folder, run in sorted(named.items()):
                for file, text in _records(run):
                    size = len(text.encode())
                    require(
                        size <= MOST_BYTES,
                        f"{run.path / file} has {size:,} bytes, more than the {MOST_BYTES:,} that "
                        "an archive of records takes",
                    )
                    entry = zipfile.ZipInfo(f"{name}/{folder}/{file}", _WHEN)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    target.writestr(entry, text)
        unfinished.replace(archive)
    except OSError as error:
        raise ConfigurationError(f"cannot write {archive}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)


def unpack_records(archive: Path, root: Path) -> tuple[list[RunFolder], list[RunFolder]]:
    """Make run folders of records; those that are there already stay as they are.

    Args:
        archive: The file.
        root: The folder of all experiments.

    Returns:
        The runs that are new, and those that were there.

    Raises:
        ConfigurationError: There is no such file, it holds other things than records, or is larger
            than what is read, or one of its runs is damaged.
    """
    entries = _entries(archive)
    places = [
        root / run for run in sorted({f"{entry['name']}/{entry['run']}" for entry in entries})
    ]
    were_there = [RunFolder(place) for place in places if place.exists()]
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".") as folder:
        unfinished = Path(folder)
        _extract(archive, entries, unfinished)
        new = [RunFolder(place) for place in places if not place.exists()]
        made = [RunFolder(unfinished / run.path.relative_to(root)) for run in new]
        for run in made:
            _require_records(run, archive)
        placed: list[Path] = []
        try:
            for run, place in zip(made, new, strict=True):
                place.path.parent.mkdir(exist_ok=True)
                run.path.rename(place.path)
                placed.append(place.path)
        except OSError as error:
            for path in placed:
                shutil.rmtree(path, ignore_errors=True)
            raise ConfigurationError(f"cannot write to {root}: {error.strerror}") from error
    return new, were_there


def _extract(archive: Path, entries: Sequence[re.Match[str]], folder: Path) -> None:
    """Write the entries of an archive below a folder, and no more than their stated sizes."""
    try:
        with zipfile.ZipFile(archive) as source:
            for number, entry in enumerate(entries):
                path = folder / entry.string
                path.parent.mkdir(parents=True, exist_ok=True)
                with source.open(entry.string) as content:  # which ends after `file_size` bytes
                    path.write_bytes(content.read(MOST_BYTES))
                os.utime(path, ns=(number, number))  # the last evaluation is known by its time
    except OSError as error:
        raise ConfigurationError(f"cannot unpack {archive}: {error.strerror}") from error
    except (*_DAMAGE, RuntimeError) as error:  # RuntimeError: an entry has a password
        raise ConfigurationError(
            f"cannot unpack {archive}: {entry.string} is damaged, or not as `coach study export` "
            f"writes it ({error})"
        ) from error


def _require_records(run: RunFolder, archive: Path) -> None:
    """Raise `ConfigurationError` for a run that could not be used once it is imported."""
    name = f"{run.path.parent.name}/{run.path.name}"
    if not run.manifest.exists() or not run.summary.exists():
        lacks = run.summary if run.manifest.exists() else run.manifest
        raise ConfigurationError(
            f"{archive} holds the run {name} without its {lacks.name}; export the run again"
        )
    try:
        is_record = read_manifest(run).get(ONLY_RECORDS) is True
        read_scores(run.path)
        later_evaluations(run.path)
    except CheckpointError as error:
        message = str(error).replace(f"{run.path.parent.parent}/", "")
        raise ConfigurationError(f"{archive} cannot be imported: {message}") from error
    require(
        is_record,
        f"{archive} holds the run {name}, whose manifest is not one of records; give a file that "
        "`coach study export` has written",
    )


def _entries(archive: Path) -> list[re.Match[str]]:
    """The entries of an archive of records, in order."""
    try:
        with zipfile.ZipFile(archive) as source:
            infos = source.infolist()
    except (OSError, *_DAMAGE) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a zip file"
        raise ConfigurationError(f"cannot read the records {archive}: {reason}") from error
    entries = [_entry(archive, info) for info in infos]
    require(bool(entries), f"{archive} holds no records")
    require(
        len(entries) <= MOST_ENTRIES,
        f"{archive} holds {len(entries):,} entries, more than the {MOST_ENTRIES:,} that are read",
    )
    size = sum(info.file_size for info in infos)
    require(
        size <= MOST_BYTES_IN_ALL,
        f"{archive} holds {size:,} bytes, more than the {MOST_BYTES_IN_ALL:,} that are read",
    )
    names = Counter(entry.string for entry in entries)
    twice = next((name for name, count in names.items() if count > 1), None)
    require(twice is None, f"{archive} holds {twice!r} twice; export the runs again")
    return entries


def _entry(archive: Path, info: zipfile.ZipInfo) -> re.Match[str]:
    """An entry by its parts; ConfigurationError for one that `write_records` would not make."""
    name = info.filename
    entry = _ENTRY.fullmatch(name)
    is_name = name.isprintable() and max(len(part.encode()) for part in name.split("/")) <= 255
    if entry is None or not is_name:
        shown = name if len(name) <= 100 else f"{name[:100]}..."
        raise ConfigurationError(
            f"{archive} holds {shown!r}, which is no record of a run; "
            "give a file that `coach study export` has written"
        )
    require(
        info.file_size <= MOST_BYTES,
        f"{archive} holds {name} with {info.file_size:,} bytes, more than the {MOST_BYTES:,} that "
        "are read",
    )
    return entry


def _named(runs: Sequence[RunFolder]) -> dict[str, RunFolder]:
    """Runs by the names of their folders; numbered where runs from several places have the same."""
    named: dict[str, RunFolder] = {}
    for run in runs:
        name = run.path.name
        number = 1
        while name in named:
            number += 1
            name = f"{run.path.name}_{number}"
        named[name] = run
    return named


def _records(run: RunFolder) -> Iterator[tuple[str, str]]:
    """Names and contents of a run's records, evaluations in the order in which they were made."""
    manifest = read_manifest(run)
    yield MANIFEST, to_json(sealed({**_anonymous(manifest), ONLY_RECORDS: True}))
    yield run.summary.name, run.summary.read_text(encoding="utf-8")
    yield "log.jsonl", _evaluations_logged(run.path / "log.jsonl")
    for path in sorted(run.evaluations.glob("*.json"), key=lambda path: path.stat().st_mtime_ns):
        yield f"{run.evaluations.name}/{path.name}", path.read_text(encoding="utf-8")


def _anonymous(manifest: Json) -> Json:
    """A manifest, or a later part of it, without the place where the run was made."""
    part = {key: value for key, value in manifest.items() if key not in ("checksum", "loaded")}
    part["command"] = []
    hardware = part.get("hardware", {})
    part["hardware"] = {
        key: value for key, value in hardware.items() if key not in ("host", "system")
    }
    if part.get("preset") is not None:
        part["preset"] = {**part["preset"], "file": Path(part["preset"]["file"]).name}
    if "resumes" in part:
        part["resumes"] = [_anonymous(each) for each in part["resumes"]]
    return part


def _evaluations_logged(path: Path) -> str:
    """The records of evaluations in a log, and its last record, which has the counters."""
    kept = []
    last = ""
    if path.exists():
        with path.open(encoding="utf-8") as file:
            for line in file:
                kept += [last] * ("evaluation" in last)
                last = line
    return "".join(kept) + last
