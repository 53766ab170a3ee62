"""Modules and names can be imported, and read from documents, under their earlier paths."""

import importlib
import warnings
from pathlib import Path

import pytest

import coach_rl
from coach_rl.core.lazy_names import current_name, moved_names


@pytest.mark.parametrize("old", moved_names())
def test_moved_names_every_entry_resolves(old):
    module, _, name = moved_names()[old].partition(":")
    assert not name or hasattr(importlib.import_module(module), name)
    importlib.import_module(module)


def test_moved_names_no_module_hides_its_names():
    assert not [
        old for old in moved_names() if ":" in old and old.partition(":")[0] in moved_names()
    ]


def test_moved_names_no_module_stands_at_an_earlier_path():
    """Names in it would be read from documents as those of the module that the path became."""
    root = Path(coach_rl.__file__).parent
    paths = {old: Path(*old.split(".")[1:]) for old in moved_names() if ":" not in old}
    found = [old for old, path in paths.items() if (root / path).with_suffix(".py").exists()]
    assert not found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("coach_rl.core.goals:OptionSpace", "coach_rl.core.options:OptionSpace"),
        (
            "coach_rl.agents.graph_agent:GraphAgentParameters",
            "coach_rl.agents.planning.graph_agent:GraphAgentParameters",
        ),
        ("coach_rl.core.steps:EnvironmentSteps", "coach_rl.core.steps:EnvironmentSteps"),
    ],
)
def test_current_name_of_an_earlier_path(old, new):
    assert current_name(old) == new


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("from coach_rl.experiment import Audience", "use coach_rl.sessions.Audience"),
        ("from coach_rl.experiment.run_lock import locked", "use coach_rl.runs.lock"),
        ("import coach_rl.agents.hac", "use coach_rl.agents.hierarchies.hac"),
        (
            "from coach_rl.experiment.overrides import said",
            "use coach_rl.configuration.overrides.format_overrides",
        ),
    ],
)
def test_import_earlier_path_warns_once_at_the_importing_line(statement, advice):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(compile(statement, "a preset", "exec"), {})
    assert [(str(each.message)[-len(advice) :], each.filename) for each in caught] == [
        (advice, "a preset")
    ]
