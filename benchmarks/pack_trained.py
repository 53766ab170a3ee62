"""Pack the finished runs of benchmarks/studies/trained.py as the package's trained agents.

    python benchmarks/pack_trained.py RUNS        # the folder after -ep of `coach study run`

Each becomes coach_rl/trained/NAME.zip: the policy of its best checkpoint, with manifest, preset and
card, scored in 100 episodes that no checkpoint was chosen by. Those that are packed are kept.
`trained/presets.json` lists the presets in them by checksum: their text is the package's own code,
also after the preset has changed.
"""

import json
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from coach_rl.configuration.strict_json import write_json
from coach_rl.extensions.exporting.policy_folder import write_policy
from coach_rl.extensions.studies.job import is_finished
from coach_rl.extensions.studies.study import Study, load_study
from coach_rl.runs.folder import RunFolder, read_manifest, runs_in
from coach_rl.runs.trained import ARCHIVES, score_text

STUDY = Path(__file__).parent / "studies" / "trained.py"


def main() -> None:
    """Pack each finished run that is not packed yet."""
    study = load_study(str(STUDY))
    finished = _finished_runs(study, Path(sys.argv[1]))
    for variant in study.variants:
        archive = ARCHIVES / f"{variant.name}.zip"
        if archive.exists() or variant.name not in finished:
            print(f"{variant.name}: {'packed before' if archive.exists() else 'not finished'}")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            policy = Path(temporary, "policy")
            manifest = write_policy(f"{finished[variant.name]}@best", policy)
            archive.parent.mkdir(parents=True, exist_ok=True)
            _pack(policy, archive)
        print(f"{variant.name}: {score_text(manifest['only_policy']['score'])}")
    write_checksums()


def write_checksums() -> None:
    """List the presets in the archives by the checksum of their text."""
    presets = {}
    for archive in sorted(ARCHIVES.rglob("*.zip")):
        with ZipFile(archive) as packed:
            entry = json.loads(packed.read("manifest.json"))["preset"]
        presets[entry["sha256"]] = Path(entry["file"]).name
    write_json(ARCHIVES / "presets.json", presets)


def _finished_runs(study: Study, root: Path) -> dict[str, Path]:
    """The newest finished run of each variant, also of another version of coach_rl."""
    seeds = {variant.name: variant.seeds or study.seeds for variant in study.variants}
    found = {}
    for run in runs_in(root / study.name):
        manifest = read_manifest(RunFolder(run))
        name = manifest["job"]["labels"]["variant"]
        if is_finished(RunFolder(run)) and manifest["task"]["seed"] in seeds.get(name, ()):
            found[name] = run
    return found


def _pack(folder: Path, archive: Path) -> None:
    """Write a folder as an archive, equal for equal files."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = ZipInfo(file.relative_to(folder).as_posix())
            entry.compress_type, entry.external_attr = ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    main()
