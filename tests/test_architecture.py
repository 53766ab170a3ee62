"""The import matrix of docs/architecture.md holds."""

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    "functional": {"core"},
    "architectures": {"core", "functional"},
    "memories": {"core"},
    "exploration_policies": {"core"},
    "telemetry": {"core", "graph_managers", "configuration"},
    "agents": {"core", "functional", "architectures", "memories", "exploration_policies"},
    "levels": {"core"},
    "processes": {"core"},
    "graph_managers": {"core", "levels"},
    "configuration": {"core", "graph_managers"},
    "runs": {"core", "telemetry", "graph_managers", "configuration"},
    "sessions": {"core", "telemetry", "graph_managers", "configuration", "runs", "processes"},
    "cli": {
        "processes",
        "sessions",
        "runs",
        "configuration",
        "graph_managers",
        "telemetry",
        "core",
        "environments",
    },
    "environments": {"core", "processes", "configuration"},
    "filters": {"core"},
    "extensions": {
        "core",
        "functional",
        "architectures",
        "memories",
        "exploration_policies",
        "telemetry",
        "agents",
        "levels",
        "processes",
        "graph_managers",
        "configuration",
        "runs",
        "sessions",
        "cli",
        "environments",
        "filters",
    },
}

CORE = (
    "core",
    "functional",
    "architectures",
    "memories",
    "exploration_policies",
    "agents",
    "levels",
    "graph_managers",
    "filters",
)
"""The rooms that are the engine."""
SERVED_BY = {"processes"}
"""Rooms beside it that it still imports."""


def imported_rooms(source: str) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "coach_rl":
                names = [f"coach_rl.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("coach_rl.")}
    return rooms


@pytest.mark.parametrize("room", ALLOWED)
def test_room_imports_only_what_it_may(room):
    folder = CHECKOUT / "coach_rl" / room
    files = list(folder.rglob("*.py"))
    assert files, f"no files in {folder}"
    for file in files:
        strange = imported_rooms(file.read_text()) - ALLOWED[room] - {room}
        assert not strange, f"{file.relative_to(CHECKOUT)} imports {sorted(strange)}"


@pytest.mark.parametrize("room", CORE)
def test_the_core_imports_nothing_that_runs_it(room):
    for file in (CHECKOUT / "coach_rl" / room).rglob("*.py"):
        strange = imported_rooms(file.read_text()) - {*CORE, *SERVED_BY}
        assert not strange, f"{file.relative_to(CHECKOUT)} imports {sorted(strange)}"


def test_functional_imports_torch_only():
    for file in (CHECKOUT / "coach_rl" / "functional").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= {"torch", "math"}, file
        if file.name != "__init__.py":  # which needs `lazy_names`
            assert not imported_rooms(file.read_text()) - {"functional"}, file


def test_no_room_is_forgotten():
    rooms = {
        path.name for path in (CHECKOUT / "coach_rl").iterdir() if (path / "__init__.py").exists()
    }
    assert rooms == {*ALLOWED, "presets"}  # which may import everything


def test_the_matrix_notices_a_forbidden_import():
    assert imported_rooms("from coach_rl.agents.x import X\nimport coach_rl.levels") == {
        "agents",
        "levels",
    }


def test_presets_are_never_imported_by_the_engine():
    for file in (CHECKOUT / "coach_rl").rglob("*.py"):
        assert "presets" not in imported_rooms(file.read_text()) or file.parent.name == "presets", (
            file
        )


@pytest.mark.parametrize("banned", ["utils.py", "helpers.py"])
def test_no_junk_drawers(banned):
    assert not [path for path in CHECKOUT.rglob(banned) if ".venv" not in path.parts]


def test_parameters_check_what_they_are_given():
    for room in ALLOWED:
        for file in (CHECKOUT / "coach_rl" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Parameters"):
                    made_by = [ast.unparse(each) for each in node.decorator_list]
                    plain = [each for each in made_by if each.startswith("dataclass")]
                    assert not plain, f"{file}: {node.name} is no parameter_class"
