"""A run's folder: where its parts are, and its manifest.

    experiments/<name>/<level>_seed<seed>_<time-stamp>/
        manifest.json          everything the run was made from, see `manifest`
        preset.py              the preset's source, where there was one (not of files it imports)
        checkpoints/           see `checkpoint`
        log.jsonl, *.csv       what the run said
        events.out.tfevents.*  the same for TensorBoard, which names a run by its folder
        videos/                where asked for
        inspections/           what an inspection has found something wrong in, where asked for
        summary.json           what the run came to

One process at a time writes into it. `run_creation` makes it.
"""

from dataclasses import dataclass
from pathlib import Path

from coach_rl.configuration.parameters_json import with_current_names
from coach_rl.configuration.strict_json import (
    Json,
    read_sealed,
    require_types,
    require_version,
    sealed,
    write_json,
)
from coach_rl.core.errors import CheckpointError
from coach_rl.core.moved_names import current_name

SCHEMA_VERSION = 2
"""Version of the manifest; raised when an older reader could misread it.

1: without a checksum, which a reader of that time would leave as it was in a changed manifest.
"""

MANIFEST = "manifest.json"
ONLY_RECORDS = "only_records"
"""A key of the manifests of runs of which there are only records, without checkpoints."""
PRESET_COPY = "preset.py"

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


@dataclass(frozen=True)
class RunFolder:
    """Paths of the parts of a run."""

    path: Path
    """`experiments/<name>/<level>_seed<seed>_<time-stamp>`."""

    @property
    def manifest(self) -> Path:
        """Everything the run was made from."""
        return self.path / MANIFEST

    @property
    def preset(self) -> Path:
        """The preset's source."""
        return self.path / PRESET_COPY

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints; exists once there is one."""
        return self.path / "checkpoints"

    @property
    def summary(self) -> Path:
        """The final evaluation."""
        return self.path / "summary.json"

    @property
    def evaluations(self) -> Path:
        """The folder of evaluations made afterwards; exists once there is one."""
        return self.path / "evaluations"

    @property
    def videos(self) -> Path:
        """The folder of videos; exists once there is one."""
        return self.path / "videos"

    @property
    def inspections(self) -> Path:
        """The folder of what inspections found something wrong in; exists once there is some."""
        return self.path / "inspections"


def read_manifest(folder: RunFolder) -> Json:
    """The manifest of a run; CheckpointError when missing, changed, or of another version.

    Classes in it have the names of this version, whichever wrote it.
    """
    source = str(folder.manifest)
    manifest = read_sealed(folder.manifest, next_step=_EDITED)
    require_types(manifest, {"schema_version": object}, source=source)
    versions = manifest.get("versions")
    written_by = versions.get("coach-rl") if isinstance(versions, dict) else None
    require_version(manifest, (1, SCHEMA_VERSION), source=source, written_by=written_by)
    require_types(manifest, _TYPES, source=source)
    if manifest["preset"] is not None:
        entry = {"name": str, "file": str, "function": str, "module": str}
        require_types(manifest["preset"], entry, source=f"the preset in {source}")
    for part in manifest["resumes"]:
        if not isinstance(part, dict):
            raise CheckpointError(f"{source} is damaged: a resume in it is no JSON object")
    names = {key: with_current_names(manifest[key]) for key in ("parameters", "task")}
    return {**manifest, **names, "graph_manager": current_name(manifest["graph_manager"])}


def write_manifest(folder: RunFolder, manifest: Json) -> None:
    """Write a run's manifest, with its checksum, in today's version."""
    write_json(folder.manifest, sealed({**manifest, "schema_version": SCHEMA_VERSION}))
