"""Write coach_rl/core/moved_names.json: where modules and public names of a release are now.

    python .ci/moved_names.py c7db0938          # the commit of that release

Entries that exist are kept and follow further moves. Names that are nowhere any more are printed;
those that have other names now stand in RENAMED.
"""

import ast
import io
import json
import subprocess
import sys
import tarfile
from collections import defaultdict
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TABLE = CHECKOUT / "coach_rl" / "core" / "moved_names.json"
FOLDERS = ("coach_rl", "environments", "filters")
RENAMED = {
    "MemberAgents": "AgentGroup",
    "TaskParameters": "Runtime",
    "trouble": "write_failure",
    "HeldInput": "FrozenStatisticsFilter",
    "PresetParcel": "PresetBundle",
    "Standing": "RunStatus",
    "StopsWhenAsked": "StopOnNote",
    "Track": "JobTracker",
    "ask_to_stop": "write_stop_note",
    "carried_runs": "max_parallel_runs",
    "packed": "bundled",
    "said": "format_overrides",
    "said_space": "format_space",
    "standing_of": "run_status",
    "unpacked": "unbundle",
    "coach_rl.core.inspection:Look": "coach_rl.core.inspection:Observer",
    "coach_rl.studies.conduct:LOOK_SECONDS": "coach_rl.studies.conduct:POLL_SECONDS",
    "coach_rl.studies.earlier_runs:difference": "coach_rl.studies.study_runs:parameter_difference",
    "coach_rl.studies.ray_cluster:LOOK_SECONDS": (
        "coach_rl.studies.clusters.ray_cluster:POLL_SECONDS"
    ),
    "coach_rl.studies.slurm:LOOK_SECONDS": "coach_rl.studies.clusters.slurm:POLL_SECONDS",
    "coach_rl.studies.sweep_report:report": "coach_rl.studies.sweeps.report:report",
    "EnvironmentTraceback": "RemoteTraceback",
    "LostJob": "WorkerLost",
}
"""New names of public classes and functions by their old ones, or by module and name."""
GONE = {
    "coach_rl.environments.gymnasium.probing:SEED",
    "coach_rl.environments.gymnasium.worker:PATIENCE_SECONDS",
    "coach_rl.environments.gymnasium.worker:Worker",
    "coach_rl.experiment.runner:policy_of",
    "coach_rl.graph_managers.worker_places:packed",
}
"""Names without a successor, though other modules have names like them."""

Names = dict[str, set[str]]


def public_names(source: str) -> set[str]:
    """Names that a module defines or, in a package's `__all__`, offers."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.add(node.name)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items)):
                names |= {item.value for item in items if isinstance(item, ast.Constant)}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return {name for name in names if not name.startswith("_")}


def module_name(path: str) -> str:
    """The module in a file of the checkout."""
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("coach_rl") else f"coach_rl.{name}"


def names_at(commit: str) -> Names:
    """Public names by module at a commit."""
    command = ["git", "archive", commit, *FOLDERS]
    archive = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {
            module_name(member.name): public_names(file.read().decode())
            for member in tar
            if member.name.endswith(".py") and (file := tar.extractfile(member)) is not None
        }


def names_now() -> Names:
    """Public names by module in the checkout."""
    return {
        module_name(str(file.relative_to(CHECKOUT))): public_names(file.read_text())
        for folder in FOLDERS
        for file in (CHECKOUT / folder).rglob("*.py")
        if not any(part.is_symlink() for part in file.parents)
    }


def moves(old: Names, new: Names) -> tuple[dict[str, str], list[str]]:
    """Entries of the table, and the names that are nowhere any more."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module, names in new.items():
        for name in names:
            homes[name].append(module)
    table: dict[str, str] = {}
    gone: list[str] = []
    for module, names in sorted(old.items()):
        is_package = any(other.startswith(f"{module}.") for other in old)
        found = {}
        for name in sorted(names - new.get(module, set())):
            if f"{module}:{name}" in RENAMED:
                found[name] = RENAMED[f"{module}:{name}"]
                continue
            now = RENAMED.get(name, name)
            places = [p for p in homes[now] if _is_package(p, new) == is_package] or homes[now]
            if not places or f"{module}:{name}" in GONE:
                gone.append(f"{module}:{name}")
                continue
            alike = [p for p in places if p.rpartition(".")[2] == module.rpartition(".")[2]]
            near = [p for p in places if p.split(".")[:2] == module.split(".")[:2]]
            found[name] = f"{(alike or near or sorted(places))[0]}:{now}"
        targets = {target.partition(":")[0] for target in found.values()}
        same = all(target.endswith(f":{name}") for name, target in found.items())
        if module not in new and not is_package and len(targets) == 1 and same:
            table[module] = targets.pop()
        else:
            table |= {f"{module}:{name}": target for name, target in found.items()}
    return table, gone


def _is_package(module: str, names: Names) -> bool:
    return any(other.startswith(f"{module}.") for other in names)


def followed(table: dict[str, str], entries: dict[str, str]) -> dict[str, str]:
    """Entries of earlier tables, led on to where these names are now."""
    result = {}
    for old, target in entries.items():
        module, colon, name = target.partition(":")
        moved = table.get(target) or table.get(module, module) + colon + name
        result[old] = moved
    return result


def main() -> None:
    """Write the table."""
    new = names_now()
    table, gone = moves(names_at(sys.argv[1]), new)
    kept = json.loads(TABLE.read_text()) if TABLE.exists() else {}
    listed = {old.partition(":")[0] for old in table}  # wholly, or name by name
    kept = {old: new for old, new in kept.items() if old.partition(":")[0] not in listed}
    table = {**followed(table, kept), **table}

    def is_there(target: str) -> bool:
        module, colon, name = target.partition(":")
        return module in new and (not colon or name in new[module])

    table = {old: new for old, new in sorted(table.items()) if is_there(new) and not is_there(old)}
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(table)} entries; gone: {', '.join(gone) or 'none'}")


if __name__ == "__main__":
    main()
