"""Files entered by runs, public methods and lines by room are those of `tests/guards.toml`."""

import importlib.util
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[1] / "benchmarks" / "house.py"
UPDATE = (
    'run `python benchmarks/house.py --guards --reason "..."`, or write into tests/guards.toml:'
)


def load_house():
    spec = importlib.util.spec_from_file_location("house", HOUSE)
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house = load_house()
RECORDED = house.recorded()


def stale(section, now, *, may_fall=False):
    """Lines to write into a section, for figures that aren't as recorded."""
    found = []
    for name in now.keys() | RECORDED[section].keys():
        old = RECORDED[section].get(name, {"figure": None})["figure"]
        new = now.get(name)
        if new is None:
            found.append(f"delete {name!r}, which there is no longer")
        elif old is None or new > old or (new < old and not may_fall):
            found.append(f"{house.guard_line(name, new, '...')}  # recorded: {old}")
    return "\n".join([UPDATE, f"[{section}]", *sorted(found)]) if found else ""


@pytest.mark.timeout(300)
def test_files_entered_by_runs_are_as_recorded():
    counted = {name: found["files"] for name, found in house.all_entered().items()}
    assert not stale("entered", counted), stale("entered", counted)


def test_public_methods_are_as_recorded():
    counted = {name: len(found) for name, found in house.in_own_process("methods").items()}
    assert not stale("methods", counted), stale("methods", counted)


def test_rooms_have_at_most_the_recorded_lines():
    counted = house.rooms()
    assert not stale("rooms", counted, may_fall=True), stale("rooms", counted, may_fall=True)


@pytest.mark.parametrize(
    ("figure", "may_fall", "expected"),
    [(10, False, False), (11, False, True), (9, False, True), (9, True, False), (11, True, True)],
)
def test_stale_figure_is_reported_with_its_new_line(monkeypatch, figure, may_fall, expected):
    monkeypatch.setitem(RECORDED, "rooms", {"memories": {"figure": 10, "reason": "start"}})
    message = stale("rooms", {"memories": figure}, may_fall=may_fall)
    assert (f'"memories" = {{ figure = {figure}, reason = "..." }}' in message) == expected


def test_stale_room_that_is_gone_or_new_is_reported(monkeypatch):
    monkeypatch.setitem(RECORDED, "rooms", {"memories": {"figure": 10, "reason": "start"}})
    message = stale("rooms", {"processes": 5})
    assert "delete 'memories'" in message
    assert '"processes" = { figure = 5' in message


def test_guards_without_a_reason_record_falls_and_refuse_rises(monkeypatch, tmp_path):
    kept = tmp_path / "guards.toml"
    kept.write_text('# Heading.\n\n[rooms]\n"core" = { figure = 10, reason = "start" }\n')
    monkeypatch.setattr(house, "GUARDS", kept)
    monkeypatch.setattr(house, "guarded", lambda: {"rooms": {"core": 12}})
    with pytest.raises(SystemExit) as refused:
        house.write_guards(None)
    assert "core 10 -> 12" in str(refused.value)
    house.write_guards("core: clocks")
    assert house.recorded() == {"rooms": {"core": {"figure": 12, "reason": "core: clocks"}}}
    monkeypatch.setattr(house, "guarded", lambda: {"rooms": {"core": 9}})
    house.write_guards(None)
    assert house.recorded()["rooms"]["core"]["figure"] == 9
    assert kept.read_text().startswith("# Heading.\n\n[rooms]")
