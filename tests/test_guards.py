"""Figures of the code are at most the ceilings of `guards.toml`; what they count is counted."""

import ast
import re
import sys

import pytest

from coach_rl.core.steps import EnvironmentSteps
from tests import measures, mutants

GUARDS = """# Heading.

[core]
"code lines" = 100

[tick]
"CartPole_PPO, calls" = 20
"""


def test_figures_of_the_source_are_at_most_their_ceilings():
    assert not measures.above(measures.of_source() | measures.of_classes())


@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="frames are counted on Python 3.11")
def test_functions_entered_by_ticks_and_learning_are_at_most_their_ceilings():
    assert not measures.above(measures.of_runs(("tick", "improve")))


@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="frames are counted on Python 3.11")
def test_files_of_the_loop_are_the_reading_list_and_at_most_their_ceilings():
    lines = measures.of_loop_files()
    page = (measures.ROOT / "docs/architecture.md").read_text()
    section = page.partition("### The loop of flat PPO")[2].partition("\n### ")[0]
    listed = [f"coach_rl/{name}" for name in re.findall(r"`([\w/]+\.py)`", section)]
    assert sorted(listed) == sorted(lines), "docs/architecture.md lists the files of the loop"
    assert not measures.above(measures.reading(lines))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="frames are counted on Python 3.11")
def test_functions_entered_by_resumes_are_at_most_their_ceilings():
    assert not measures.above(measures.of_runs(("resume",)))


def test_every_subject_has_files_and_owns_its_classes():
    for name, subject in measures.subjects().items():
        owned = [file for file in measures.files() if measures.owner(file) == name]
        assert owned, f"the files of the subject {name} are gone; so is its section"
        assert subject.names


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ({"core": {"code lines": 100}}, []),
        ({"core": {"code lines": 99}}, []),
        ({"core": {"code lines": 101}}, ["[core] code lines: 101, at most 100"]),
        (
            {"core": {"lines": 5}},
            ["[core] code lines: None, at most 100", "[core] lines: 5, at most None"],
        ),
    ],
)
def test_figure_above_its_ceiling_gone_or_new_is_reported(now, expected, monkeypatch):
    monkeypatch.setattr(measures, "guards", lambda: {"core": {"code lines": 100}})
    assert measures.above(now) == expected


def test_ceilings_are_lowered_never_raised():
    now = {"core": {"code lines": 90}, "tick": {"CartPole_PPO, calls": 30}}
    expected = GUARDS.replace("= 100", "= 90")
    assert measures.lowered(GUARDS, now) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x is None", 1),
        ("x == 3", 0),
        ("isinstance(x, int) and hasattr(x, 'y')", 2),
        ("getattr(x, 'y', None) or getattr(x, 'z')", 1),
        ("callable(x)", 1),
        ("match x:\n    case None:\n        pass", 1),
    ],
)
def test_optionals_are_counted(source, expected):
    assert sum(map(measures.is_optional, ast.walk(ast.parse(source)))) == expected


def test_circles_are_groups_that_import_each_other():
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}, "g": set()}
    assert measures.cyclic(edges) == [["a", "b", "c"], ["e", "f"]]


def test_entered_functions_have_calls_and_lines_of_code():
    with measures.Entered() as entered:
        EnvironmentSteps(3)
    found = measures.figures(entered.functions())
    assert any("StepUnit.__post_init__" in name for name in found["names"])
    assert found["calls"] == found["functions"] == len(found["names"])
    assert found["lines"] >= 4


def test_every_mutant_still_has_its_place():
    gone = [each for each in mutants.mutants() if mutants.place(each) is None]
    assert not gone, "write the expression as it is now into mutants.toml, or draw another"


def test_mutant_is_written_into_a_checkout(tmp_path):
    file = tmp_path / "coach_rl" / "sums.py"
    file.parent.mkdir()
    file.write_text("def total(a, b):\n    return a + b * 2\n")
    mutant = {
        "file": "coach_rl/sums.py",
        "function": "total",
        "before": "b * 2",
        "after": "b + 2",
    }
    mutants.applied(mutant, tmp_path)
    assert file.read_text() == "def total(a, b):\n    return a + (b + 2)\n"
