"""Addresses and versions that a release needs are consistent, and a release without them fails."""

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

CHECKOUT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
LARGEST = 1_500_000
"""Bytes of a file in the checkout at most: the film of a page has 1.3 MB."""
TAG = os.environ.get("COACH_RELEASE", "")
"""The tag of the release that is tested; empty in all other tests."""
_spec = importlib.util.spec_from_file_location("publishable", CHECKOUT / ".ci" / "publishable.py")
publishable = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publishable)
FILES = ("pyproject.toml", *publishable.REPEATED)


def with_address(folder, address):
    """Copies of the files that have the repository's address, with another one."""
    old = PYPROJECT["project"]["urls"]["Repository"]
    for name in FILES:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text((CHECKOUT / name).read_text().replace(old, address))
    return folder


def test_pages_have_the_address_of_the_repository():
    assert [each for each in publishable.problems(CHECKOUT) if "placeholder" not in each] == []


def test_release_with_placeholders_is_refused(tmp_path):
    folder = with_address(tmp_path, "https://git.example.org/coach_rl")
    assert any("placeholder" in each for each in publishable.problems(folder))


def test_release_with_addresses_is_publishable(tmp_path):
    folder = with_address(tmp_path, "https://codeberg.org/someone/coach_rl")
    version = PYPROJECT["project"]["version"]
    assert [*publishable.problems(folder, f"v{version}")] == []
    assert [*publishable.problems(folder, "v99")] == [
        f"the tag v99 is not of version {version}, which pyproject.toml has"
    ]


@pytest.mark.skipif(not TAG, reason="COACH_RELEASE, a release's tag, is not set")
def test_release_has_no_placeholders():
    assert [*publishable.problems(CHECKOUT, TAG)] == []


def test_publishable_prints_what_is_left():
    done = subprocess.run(
        [sys.executable, CHECKOUT / ".ci" / "publishable.py"], capture_output=True, text=True
    )
    assert done.returncode == bool([*publishable.problems(CHECKOUT)])
    assert done.stdout


def lowest():
    """The versions in constraints-lowest.txt, by name."""
    lines = (CHECKOUT / "constraints-lowest.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower(): version for name, version in pairs}


def test_lowest_versions_are_those_of_the_dependencies():
    floors = {}
    for text in PYPROJECT["project"]["dependencies"]:
        needed = Requirement(re.sub(r"\s*#.*", "", text))
        (floor,) = [each.version for each in needed.specifier if each.operator == ">="]
        floors[needed.name.lower()] = floor
    pinned = lowest()
    assert floors.keys() <= pinned.keys()
    for name, floor in floors.items():
        assert Version(pinned[name]) >= Version(floor), name
        assert (
            Version(pinned[name]).release[: len(Version(floor).release)] == Version(floor).release
        )


def test_no_file_of_the_checkout_is_large():
    """Data sets and checkpoints are made by commands, and never kept with the code."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no checkout of git")
    files = [CHECKOUT / name for name in listed.stdout.split("\0") if name]
    sizes = {str(each): each.stat().st_size for each in files if each.is_file()}
    assert len(sizes) > 1_000
    assert not {name: size for name, size in sizes.items() if size > LARGEST}
