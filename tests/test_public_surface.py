"""What rooms offer is listed, there, and documented (ruff keeps the lists sorted)."""

import importlib
import importlib.metadata
import inspect
import pkgutil

import pytest

import coach_rl

ROOMS = ["coach_rl"] + [
    module.name for module in pkgutil.walk_packages(coach_rl.__path__, "coach_rl.") if module.ispkg
]


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
