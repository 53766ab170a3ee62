"""Entries of the changelog and its fragments have one form, and fragments are merged in order."""

import re
import runpy
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
PROGRAM = runpy.run_path(str(CHECKOUT / ".ci" / "changelog.py"))
CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text()
FRAGMENTS = sorted(
    set((CHECKOUT / "changelog.d").glob("*.md")) - {CHECKOUT / "changelog.d/README.md"}
)


def faults(text):
    """What is wrong with the entries of a fragment, or of the changelog."""
    found = [
        f"unknown section: {name}"
        for name in re.findall(r"^### (.*)$", text, re.MULTILINE)
        if name not in PROGRAM["SECTIONS"]
    ]
    for line in re.findall(r"^- .*$", text, re.MULTILINE):
        subject = line.removeprefix("- ")
        if len(line) > 120:
            found.append(f"over 120 characters: {line}")
        if not re.match(r"[A-Z`*\"-]", subject) or re.match(r"(The same|This|It|And)\b", subject):
            found.append(f"no subject: {line}")
        if not line.endswith("."):
            found.append(f"no period: {line}")
        if "%" in line:
            found.append(f"a score belongs to docs/results.md: {line}")
    for line in PROGRAM["entries"](text).get("Removed", ()):
        if not re.search(r"\b(use|is now|no replacement)\b", line):
            found.append(f"no replacement: {line}")
    return found + [f"continued line: {line}" for line in re.findall(r"^  .*$", text, re.MULTILINE)]


def test_changelog_entries_have_the_form():
    assert faults(CHANGELOG) == []


def test_fragment_entries_have_the_form():
    for file in FRAGMENTS:
        assert PROGRAM["entries"](file.read_text()), f"{file.name} has no entries"
        assert faults(file.read_text()) == [], file.name


def test_sections_have_the_order():
    for release in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        names = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert names == [name for name in PROGRAM["SECTIONS"] if name in names]


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("### Fixed\n\n- it works", "no subject"),
        ("### Fixed\n\n- It works.", "no subject"),
        ("### Added\n\n- A graph", "no period"),
        ("### Added\n\n- Ants arrive in 92 % of episodes.", "score"),
        (f"### Added\n\n- {'A' * 120}.", "over 120"),
        ("### Removed\n\n- `squeeze`.", "no replacement"),
        ("### News\n\n- `squeeze`.", "unknown section"),
        ("### Added\n\n- A graph.\n  With places.", "continued"),
    ],
)
def test_wrong_entry_is_found(entry, fault):
    assert any(fault in each for each in faults(entry)), faults(entry)


def test_fragments_are_merged_in_order():
    changelog = "# C\n\n## 2 (unreleased)\n\nText.\n\n### Fixed\n\n- F.\n\n## 1 (2026)\n\n- Old.\n"
    fragments = ["### Fixed\n\n- G.\n\n### Breaking\n\n- B.\n", "### Added\n- A.\n"]
    assert PROGRAM["merged"](changelog, fragments, "2026-11-26") == (
        "# C\n\n## 2 (2026-11-26)\n\nText.\n\n### Breaking\n\n- B.\n\n### Added\n\n- A.\n\n"
        "### Fixed\n\n- F.\n- G.\n\n## 1 (2026)\n\n- Old.\n"
    )


def test_merging_nothing_changes_nothing():
    assert PROGRAM["merged"](CHANGELOG, []) == CHANGELOG
