"""The tables of extensions: what they list is there, and what is wrong in one is named."""

import ast
import importlib
import json
import runpy
import shutil
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import coach_rl
from coach_rl.cli.commands import COMMANDS, commands_of
from coach_rl.configuration import extensions
from coach_rl.configuration.extensions import TABLE, own_extensions, public_names, read_extension
from coach_rl.configuration.presets import shipped_presets
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.lazy_names import imports_for_type_checkers
from tests import measures

HITS = ("coach_rl/extensions/hits/timed_hindsight.py", "presets/Gates_HiTS.py")
"""Files of HiTS, which the guards count as those of HAC."""
CHECKOUT = Path(__file__).parents[2]
EXTENSIONS = {each.name: each for each in own_extensions()}
EVERY_ONE = {
    Path(file).parent.name
    for subject in tomllib.loads((CHECKOUT / "tests/guards.toml").read_text())["subjects"].values()
    for file in subject["files"]
    if file.startswith("coach_rl/extensions/")
}
"""Names of extensions, those that were deleted from this copy included."""
PROGRAM = runpy.run_path(str(CHECKOUT / ".ci/public_names.py"))


@pytest.mark.parametrize("name", EXTENSIONS)
def test_what_a_table_lists_is_there(name):
    extension = EXTENSIONS[name]
    assert set(extension.needs) <= EXTENSIONS.keys() - {name}
    assert set(extension.presets) <= shipped_presets().keys()
    files = {file.stem for file in (CHECKOUT / "presets").glob("*.py")}
    is_whole = all(other in EXTENSIONS for other in EVERY_ONE)
    assert {*extension.needed_by, *extension.used_by} <= files or not is_whole
    listed = {
        "presets": extension.helpers,
        "environments": extension.environments,
        "docs": extension.pages,
    }
    for folder, paths in listed.items():
        assert [path for path in paths if not (CHECKOUT / folder / path).exists()] == []
    assert [path for path in extension.tests if not (CHECKOUT / path).exists()] == []
    for public, (module, there) in extension.public_names().items():
        assert getattr(coach_rl, public) is getattr(importlib.import_module(module), there)
    for command in commands_of(extension).values():
        assert COMMANDS[command.name] is not None
        assert all(flag.help for flag in command.flags)
        if command.run:
            assert callable(command.function())


def test_variants_that_a_table_lists_are_there():
    listed = [(each, kinds) for each in EXTENSIONS.values() for kinds in each.variants.values()]
    assert listed
    for extension, kinds in listed:
        for place in kinds.values():
            module, _, name = place.partition(":")
            assert module.startswith(f"coach_rl.extensions.{extension.name}.")
            assert callable(getattr(importlib.import_module(module), name))


def test_two_variants_for_one_kind_of_space_are_refused(monkeypatch):
    other = replace(EXTENSIONS["choices"], name="other")
    monkeypatch.setattr(extensions, "installed_extensions", lambda: ([other], {}))
    with pytest.raises(ConfigurationError, match="'choices' and 'other' both have a variant of"):
        extensions.variants_of("SACAgentParameters")


def test_needs_are_what_the_files_import():
    found: dict[str, set[str]] = {name: set() for name in EXTENSIONS}
    for file in measures.files():
        name = extension_of(file)
        reads = name and file not in offered_files() and not file.startswith("presets/")
        for other in imported_files(file) if reads else ():
            used = extension_of(other)
            if used not in (None, name):
                found[name].add(used)
    assert {name: set(each.needs) for name, each in EXTENSIONS.items()} == found


IN_RUNNING = {"describe": "coach_rl/cli/describe.py"}
"""Files of running that import what extensions offer to them, by the name in tables."""


@pytest.mark.parametrize("name", [name for name, each in EXTENSIONS.items() if each.offers])
def test_what_an_extension_offers_is_imported_by_the_other_alone(name):
    for user, modules in EXTENSIONS[name].offers.items():
        if user not in (*EXTENSIONS, *IN_RUNNING):
            assert user in EVERY_ONE  # deleted
            continue
        for module in modules:
            file = measures.by_module()[module]
            assert extension_of(file) == name
            imported = [*imported_files(file)]
            used = {extension_of(other) for other in imported}
            assert user in used or IN_RUNNING.get(user) in imported
            others = {extension_of(each) for each in importing_files()[file]}
            assert others <= {each for each in EXTENSIONS if user in EXTENSIONS[each].offers}


@cache
def offered_files() -> frozenset[str]:
    """The files that are for another extension, and imported only where that is there."""
    offers = [each.offers.values() for each in EXTENSIONS.values()]
    modules = [module for lists in offers for each in lists for module in each]
    return frozenset(measures.by_module()[module] for module in modules)


def extension_of(file: str) -> str | None:
    """The extension that a file belongs to, by the lists of tests/guards.toml; None: none."""
    if file in HITS:
        return "hits"
    name = (measures.owner(file) or "").replace(" ", "_")
    return name if name in EXTENSIONS else None


@cache
def importing_files() -> dict[str, set[str]]:
    """The files that import from each file."""
    found = defaultdict(set)
    for importing in measures.files():
        for file in imported_files(importing):
            found[file].add(importing)
    return found


@cache
def names_of(package: str) -> dict[str, tuple[str, str]]:
    """What a package's file offers: module and name there of each name."""
    return imports_for_type_checkers((measures.ROOT / package).read_text())


@cache
def imported_files(file: str) -> tuple[str, ...]:
    """The files that a file imports from; of a name that a package offers, the one it is in."""
    return () if file.endswith("__init__.py") else tuple(found_imports(file))


def found_imports(file: str) -> Iterator[str]:
    for node in measures.nodes(file):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("coach_rl"):
            for alias in node.names:
                module, name = str(node.module), alias.name
                while (home := measures.by_module().get(module, "")).endswith("__init__.py"):
                    offered = names_of(home)
                    if name not in offered:
                        break
                    module, name = offered[name]
                home = measures.by_module().get(f"{module}.{name}", home)
                yield from [home] if home else []


def test_needs_have_no_circle():
    left = dict(EXTENSIONS)
    while left:
        free = [name for name, each in left.items() if not set(each.needs) & left.keys()]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


def test_a_preset_name_page_and_command_belong_to_one_extension():
    for attribute in ("presets", "environments", "pages", "tests", "commands"):
        listed = [item for each in EXTENSIONS.values() for item in getattr(each, attribute)]
        assert len(listed) == len(set(listed))
    names = [name for each in EXTENSIONS.values() for name in each.public_names()]
    assert len(names) == len(set(names)) == len(public_names())
    core = imports_for_type_checkers(Path(coach_rl.__file__).read_text())
    assert not core.keys() & set(names)


def test_the_names_for_type_checkers_are_those_of_today():
    """After a change: `python .ci/public_names.py`."""
    assert PROGRAM["FILE"].read_text() == PROGRAM["stub"]()


def test_names_of_the_package_are_those_of_the_core_and_the_extensions():
    core = imports_for_type_checkers(Path(coach_rl.__file__).read_text())
    assert set(coach_rl.__all__) == {*core, *public_names(), "__version__"}
    assert set(coach_rl.__all__) <= set(dir(coach_rl))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it lacks a summary"),
        ("summary = 3", "it lacks a summary"),
        ("summary =", "Invalid value"),
        ('summary = "x"\nneed = []', "unknown key 'need'; known are summary, needs,"),
        ('summary = "x"\nneeds = "hac"', "'needs' is no list of texts"),
        ('summary = "x"\npages = [1]', "'pages' is no list of texts"),
        ('summary = "x"\nnames = []', "'names' is no table"),
        ('summary = "x"\n[names]\nmodule = "A"', "'names.module' is no list of texts"),
        ('summary = "x"\n[names]\n"m m" = ["A"]', "names has 'm m:A'; write"),
        ('summary = "x"\n[names]\nm = ["A b"]', "names has 'm:A b'; write"),
        ('summary = "x"\n[commands.a]\nrun = "m:f"', "commands.a lacks 'arguments'"),
        ('summary = "x"\n[commands."a\\n"]\nrun = "m:f"', "a command cannot be called 'a\\n'"),
        (
            'summary = "x"\n[commands.a]\narguments = "R"\ndescription = "A."\nrun = "f"',
            "commands.a.run is 'f'; write package.module:name",
        ),
        (
            'summary = "x"\n[commands.a]\narguments = "[flags]"\ndescription = "A."\nflag = "m:F"',
            "unknown key 'flag' in commands.a",
        ),
        (
            'summary = "x"\n[familiar.flag]\na = ["--b"]',
            "unknown key 'familiar.flag'; known are settings, flags",
        ),
        ('summary = "x"\n[variants.A]\nDict = "f"', "variants.A has 'Dict' = 'f'; write a kind"),
        ('summary = "x"\n[variants.A]\nDict = 3', "'variants.A' is no table of texts"),
        ("#" * 100_001, "it has more than 100,000 bytes"),
    ],
)
def test_wrong_table_error_names_the_file_and_the_entry(text, problem, tmp_path):
    file = tmp_path / TABLE
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_extension("mine", file)
    message = str(caught.value)
    assert message.startswith(f"the extension 'mine' cannot be read, {file}: ")
    assert problem in message
    assert "\n" not in message


def test_tables_are_kept_until_one_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(extensions, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / TABLE).write_text(f'summary = "{name}"\n')

    def summaries() -> list[str]:
        return [each.summary for each in own_extensions.__wrapped__()]

    assert summaries() == ["one", "two"]
    with monkeypatch.context() as patched:
        patched.setattr(extensions, "_read", None)  # nothing is read again
        assert summaries() == ["one", "two"]
    (tmp_path / "two" / TABLE).write_text('summary = "another"\n')
    assert summaries() == ["one", "another"]
    shutil.rmtree(tmp_path / "one")
    assert summaries() == ["another"]
    (cache,) = (tmp_path / "__pycache__").iterdir()
    stamps = json.loads(cache.read_bytes())["stamps"]
    of_three = json.dumps({"stamps": stamps, "tables": {"two": 3}})
    for damaged in ("", "[]", '{"stamps": 3}', "\udcff", of_three):
        cache.write_bytes(damaged.encode(errors="surrogateescape"))
        assert summaries() == ["another"]
    cache.unlink()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert summaries() == ["another"]
    assert not cache.exists()


def test_missing_table_error(tmp_path):
    with pytest.raises(ConfigurationError, match="No such file"):
        read_extension("mine", tmp_path / TABLE)
