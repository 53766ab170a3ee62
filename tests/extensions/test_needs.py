"""Extensions use those that their tables name, and no others, so that each can be deleted alone."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from coach_rl.configuration.extensions import Extension, own_extensions

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "coach_rl"
EXTENSIONS = {each.name: each for each in own_extensions()}
OWNERS = {name: each.name for each in own_extensions() for name in each.public_names()}
"""Extensions by the public names that they have."""
PRESETS = {file.stem for file in (CHECKOUT / "presets").glob("*.py")} - {"__init__"}


def modules_of(source: str) -> Iterator[str]:
    """The modules and public names that a program imports or reads from `coach_rl`, dotted."""
    tree = ast.parse(source)
    faces = {"coach_rl"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            faces |= {alias.asname or "" for alias in node.names if alias.name == "coach_rl"}
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in faces:
            yield f"coach_rl.{node.attr}"
        elif isinstance(node, ast.Constant) and node.value in OWNERS:  # looked up by its name
            yield f"coach_rl.{node.value}"


def module_of(file: Path) -> str:
    """The module of a file of the checkout, dotted; of a package's file the package."""
    return ".".join(file.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__")


def environments_of(extension: Extension) -> list[Path]:
    """The environments' files of an extension, without those that another lists by their names."""
    others = {path for each in own_extensions() for path in each.environments if each != extension}
    found = []
    for path in extension.environments:
        place = CHECKOUT / "environments" / path
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        found += [
            file for file in files if str(file.relative_to(CHECKOUT / "environments")) not in others
        ]
    return found


ENVIRONMENTS = {
    module_of(file).replace("environments.", "coach_rl.environments.", 1): name
    for name, each in EXTENSIONS.items()
    for file in environments_of(each)
}
"""Extensions by the modules of their environments."""


def used(source: str) -> set[str]:
    """The extensions that a program uses, by name."""
    found = set()
    for module in modules_of(source):
        words = module.split(".")
        packages = [".".join(words[:count]) for count in range(len(words), 2, -1)]
        environments = [ENVIRONMENTS[each] for each in packages if each in ENVIRONMENTS]
        if words[:2] == ["coach_rl", "extensions"] and len(words) > 2:
            found.add(words[2])
        elif environments:
            found.add(environments[0])
        elif words[0] == "coach_rl" and words[-1] in OWNERS:
            found.add(OWNERS[words[-1]])
    return found


def with_needs(names: set[str]) -> set[str]:
    """Extensions, and all that those need, directly or not."""
    more = {need for name in names for need in EXTENSIONS[name].needs} - names
    return with_needs(names | more) if more else names


@cache
def used_by_preset(name: str) -> frozenset[str]:
    """The extensions that a file below presets uses, and those of the files there it imports."""
    source = (CHECKOUT / f"presets/{name}.py").read_text()
    found = used(source)
    for other in helpers_of(source) - {name}:
        found |= used_by_preset(other)
        found |= {each.name for each in own_extensions() if f"{other}.py" in each.helpers}
    return frozenset(found)


def helpers_of(source: str) -> set[str]:
    """The files below presets that a preset imports."""
    words = [module.split(".") for module in modules_of(source)]
    return {
        each[2] for each in words if each[:2] == ["coach_rl", "presets"] and len(each) > 2
    } & PRESETS


def used_by_helpers(preset: str) -> set[str]:
    """The extensions that a preset may use through the files it imports, which are listed there."""
    helpers = helpers_of((CHECKOUT / f"presets/{preset}.py").read_text()) - {preset}
    direct = {each.name for each in own_extensions() if helpers & set(each.used_by)}
    return direct.union(*map(used_by_helpers, helpers))


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_uses_only_those_that_it_needs(name: str) -> None:
    extension = EXTENSIONS[name]
    receivers = {module: to for to, modules in extension.offers.items() for module in modules}
    files = [*sorted((PACKAGE / "extensions" / name).rglob("*.py")), *environments_of(extension)]
    for file in files:
        allowed = {name, *extension.needs, receivers.get(module_of(file), name)}
        strange = used(file.read_text()) - allowed
        assert not strange, f"{file.relative_to(CHECKOUT)} uses {sorted(strange)}"


def listed_for(preset: str) -> tuple[set[str], set[str]]:
    """The extensions that a preset or helper belongs to, and others whose tables list it."""
    own, others = set(), set()
    for each in own_extensions():
        if preset in each.presets or f"{preset}.py" in each.helpers:
            own.add(each.name)
        elif preset in (*each.needed_by, *each.used_by):
            others.add(each.name)
    return own, others


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_preset_uses_only_extensions_that_list_it(preset: str) -> None:
    own, others = listed_for(preset)
    strange = used_by_preset(preset) - with_needs(own | others) - used_by_helpers(preset)
    assert not strange, f"presets/{preset}.py uses {sorted(strange)}; list it under needed_by there"


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_preset_uses_the_extensions_that_list_it(preset: str) -> None:
    own, others = listed_for(preset)
    assert others <= used_by_preset(preset)
    assert not others & with_needs(own), "what the own extension needs lists it as well"


@pytest.mark.parametrize(
    ("source", "extensions"),
    [
        ("import coach_rl as rl\nagent = rl.GraphAgentParameters()", {"planning"}),
        ("from coach_rl import HACAgentParameters", {"hac"}),
        ("from coach_rl.extensions.hiro import hiro_agent", {"hiro"}),
        ("import coach_rl.extensions.films", {"films"}),
        ("def later():\n    from coach_rl.environments import pettingzoo", {"groups"}),
        ("from coach_rl.environments.toy.workshop import TASKS", {"workshop"}),
        ("import coach_rl as rl\nagent = rl.PPOAgentParameters()", set()),
        ("import numpy as rl\nrl.GraphAgentParameters", set()),
    ],
)
def test_used_finds_modules_and_public_names(source: str, extensions: set[str]) -> None:
    assert used(source) == extensions
