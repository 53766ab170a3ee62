"""The records of finished runs in one file: all that tables are made of, without checkpoints.

    write_records(Path("walks.zip"), "walks", [run.folder for run in runs])
    unpack_records(Path("walks.zip"), Path("experiments"))

Unpacked runs are done: they are counted, compared and drawn like any others, but nothing continues
from them. Records leave out on whose machine a run was made: command line, paths and host.
"""

import os
import re
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from coach_rl.core.errors import ConfigurationError
from coach_rl.experiment.run_creation import check_name
from coach_rl.experiment.run_folder import MANIFEST, ONLY_RECORDS, RunFolder, read_manifest
from coach_rl.experiment.strict_json import Json, sealed, to_json

_ENTRY = re.compile(
    r"(?P<name>[^/.][^/]*)/(?P<run>[^/.][^/]*)/"
    r"(?P<file>manifest\.json|summary\.json|log\.jsonl|evaluations/[^/.][^/]*\.json)"
)
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
        ConfigurationError: There is no such file, or it holds other things than records.
        CheckpointError: A manifest in it is damaged.
    """
    entries = _entries(archive)
    places = [
        root / run for run in sorted({f"{entry['name']}/{entry['run']}" for entry in entries})
    ]
    were_there = [RunFolder(place) for place in places if place.exists()]
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".") as folder:
        unfinished = Path(folder)
        with zipfile.ZipFile(archive) as source:
            for number, entry in enumerate(entries):
                path = unfinished / entry.string
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(source.read(entry.string))
                os.utime(path, ns=(number, number))  # the last evaluation is known by its time
        new = [RunFolder(place) for place in places if not place.exists()]
        made = [RunFolder(unfinished / run.path.relative_to(root)) for run in new]
        for run in made:
            read_manifest(run)
        for run, place in zip(made, new, strict=True):
            place.path.parent.mkdir(exist_ok=True)
            run.path.rename(place.path)
    return new, were_there


def _entries(archive: Path) -> list[re.Match[str]]:
    """The entries of an archive of records, in order."""
    try:
        with zipfile.ZipFile(archive) as source:
            names = source.namelist()
    except (OSError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no zip file"
        raise ConfigurationError(f"cannot read the records {archive}: {reason}") from error
    entries = []
    for name in names:
        entry = _ENTRY.fullmatch(name)
        if entry is None:
            raise ConfigurationError(
                f"{archive} holds {name!r}, which is no record of a run; "
                "give a file that `coach study export` has written"
            )
        entries.append(entry)
    if not entries:
        raise ConfigurationError(f"{archive} holds no records")
    return entries


def _named(runs: Sequence[RunFolder]) -> dict[str, RunFolder]:
    """Runs by the names of their folders; numbered where runs from several places have the same."""
    named: dict[str, RunFolder] = {}
    for run in runs:
        name, number = run.path.name, 1
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
    """A manifest, or a later part of it, that does not tell where the run was made."""
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
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    return "".join(line for line in lines[:-1] if "evaluation" in line) + "".join(lines[-1:])
