"""A preset of the user's own with the files beside it, as data for another machine.

    parcel = packed(job)            # None for a preset that comes with coach_rl
    preset = unpacked(parcel)       # there: the preset, with its neighbours beside it

What a preset imports and the models it reads are in its folder, so the whole folder travels.
"""

import getpass
import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import PresetReference, find_preset, shipped_presets
from coach_rl.core.errors import ConfigurationError
from coach_rl.runs.folder import MANIFEST
from coach_rl.studies.job import Job

MOST_BYTES = 100_000_000
"""Size up to which a preset's folder travels."""

_LEFT_OUT = ("__pycache__", "node_modules", "site-packages")


@dataclass(frozen=True, kw_only=True)
class PresetParcel:
    """The folder of a preset."""

    reference: PresetReference
    """The preset on the machine it comes from."""
    digest: str
    """Digest of the names, sizes and times of the folder's files."""
    archive: bytes | None
    """The folder, zipped; None where it is too large to travel."""


def with_absolute_paths(job: Job) -> Job:
    """The job as a process with another working directory can be given it."""
    found = find_preset(job.preset)
    job = replace(job, root=job.root.absolute(), modules_from=Path.cwd())
    return job if _is_shipped(found) else replace(job, preset=f"{found.path}:{found.function}")


def packed(job: Job) -> PresetParcel | None:
    """The preset of a job with its folder; None for a preset that comes with coach_rl."""
    reference = find_preset(job.preset)
    file = reference.path
    if _is_shipped(reference):
        return None
    files = _files(file.parent)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in files or ():
            archive.write(path, path.relative_to(file.parent))
    return PresetParcel(
        reference=reference,
        digest=_digest(file, files),
        archive=None if files is None else buffer.getvalue(),
    )


def unpacked(parcel: PresetParcel) -> Preset:
    """The preset, loaded from where it came from, if that is shared, or else from a copy.

    It says of itself that it is where it came from: there its user will look for it.

    Raises:
        ConfigurationError: It is not here, and its folder was too large to come along; or it fails.
    """
    copy = replace(parcel.reference, path=_unpacked(parcel))
    return replace(load_preset(copy), reference=parcel.reference)


def own_folder() -> Path:
    """The user's folder on this machine for what comes from others."""
    folder = Path(tempfile.gettempdir()) / f"coach_rl-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ConfigurationError(
            f"{folder} is a link, or belongs to another user; set TMPDIR to a folder of your own"
        )
    return folder


def _is_shipped(reference: PresetReference) -> bool:
    return reference.path in {preset.path for preset in shipped_presets().values()}


def _unpacked(parcel: PresetParcel) -> Path:
    file = parcel.reference.path
    if file.is_file() and _digest(file, _files(file.parent)) == parcel.digest:
        return file
    if parcel.archive is None:
        raise ConfigurationError(
            f"the preset {file} is not on this machine, and its folder holds more than "
            f"{MOST_BYTES // 1_000_000} MB, too much to send; put the preset and what it needs "
            "into a folder of their own, or on a path that all machines share"
        )
    home = own_folder() / "presets" / parcel.digest
    if not home.exists():
        unfinished = Path(tempfile.mkdtemp(dir=own_folder()))
        with zipfile.ZipFile(io.BytesIO(parcel.archive)) as archive:
            archive.extractall(unfinished)
        home.parent.mkdir(exist_ok=True)
        try:
            unfinished.rename(home)
        except OSError:
            if not home.exists():  # or else another process was faster
                raise
    return home / file.name


def _files(folder: Path) -> list[Path] | None:
    """The files of a folder, but hidden ones, caches and runs; None if they are too large."""
    files, size = [], 0
    for path in _walk(folder):
        size += path.stat().st_size
        if size > MOST_BYTES:
            return None
        files.append(path)
    return sorted(files)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not (path / MANIFEST).exists():
            yield from _walk(path)


def _digest(preset: Path, files: list[Path] | None) -> str:
    """Digest of a preset's folder; of the preset alone where the folder is too large."""
    digest = hashlib.sha256(preset.read_bytes())
    for path in files or ():
        status = path.stat()
        name = path.relative_to(preset.parent)
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]
