"""What rooms offer is listed, there, and documented (ruff keeps the lists sorted)."""

import importlib
import importlib.metadata
import inspect
import tomllib
from pathlib import Path

import pytest

import coach_rl

CHECKOUT = Path(__file__).parent.parent
SETUPTOOLS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["setuptools"]
ROOMS = SETUPTOOLS["packages"]


def test_every_folder_with_code_is_packaged():
    found = set()
    for package, folder in SETUPTOOLS["package-dir"].items():
        for path in (CHECKOUT / folder).rglob("__init__.py"):
            inside = path.parent.relative_to(CHECKOUT / folder).parts
            found.add(".".join((package, *inside)))
    assert found == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_room_says_what_it_is_for(room):
    assert len(importlib.import_module(room).__doc__ or "") > 60


@pytest.mark.parametrize("room", ROOMS)
def test_public_names_are_there_and_documented(room):
    module = importlib.import_module(room)
    names = getattr(module, "__all__", [])
    assert len(names) == len(set(names))
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), f"{room}.{name} has no docstring"


def test_the_version_is_one():
    assert coach_rl.__version__ == importlib.metadata.version("coach-rl")
