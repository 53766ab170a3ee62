"""Files entered by runs and public methods are at most the ceilings of `tests/guards.toml`."""

import importlib.util
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).resolve().parents[1] / "benchmarks" / "house.py"


def load_house():
    spec = importlib.util.spec_from_file_location("house", HOUSE)
    module = sys.modules["house"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house = load_house()


def above(section, now):
    """The figures above their ceilings; a name on one side alone has none on the other."""
    ceilings = house.recorded()[section]
    return {
        name: (now.get(name), ceilings.get(name))
        for name in now.keys() | ceilings.keys()
        if name not in now or name not in ceilings or now[name] > ceilings[name]
    }


@pytest.mark.timeout(300)
def test_files_entered_by_runs_are_at_most_their_ceilings():
    assert not above("entered", {name: n["files"] for name, n in house.all_entered().items()})


def test_public_methods_are_at_most_their_ceilings():
    found = house.in_own_process("methods")
    assert not above("methods", {name: len(methods) for name, methods in found.items()})


@pytest.fixture
def ceiling_of_ten(monkeypatch, tmp_path):
    kept = tmp_path / "guards.toml"
    kept.write_text('# Heading.\n\n[methods]\n"an agent" = 10\n')
    monkeypatch.setattr(house, "GUARDS", kept)
    return kept


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"an agent": 10}, {}),
        ({"an agent": 9}, {}),
        ({"an agent": 11}, {"an agent": (11, 10)}),
        ({"another": 1}, {"an agent": (None, 10), "another": (1, None)}),
    ],
)
def test_figures_above_a_ceiling_gone_or_new_are_reported(ceiling_of_ten, now, expected):
    assert above("methods", now) == expected


@pytest.mark.parametrize(("now", "expected"), [(9, 9), (12, 10)])
def test_guards_are_lowered_never_raised(ceiling_of_ten, monkeypatch, now, expected):
    monkeypatch.setattr(house, "guarded", lambda: {"methods": {"an agent": now}})
    house.lower_guards()
    assert ceiling_of_ten.read_text() == f'# Heading.\n\n[methods]\n"an agent" = {expected}\n'
