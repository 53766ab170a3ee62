"""Packages list exactly what they offer, import nothing before it is used, and document it."""

import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

import coach_rl
from coach_rl.configuration.extensions import own_extensions, public_names
from coach_rl.core.lazy_names import imports_for_type_checkers

PACKAGES = ["coach_rl"] + [
    module.name for module in pkgutil.walk_packages(coach_rl.__path__, "coach_rl.") if module.ispkg
]
OF_PRESETS = ("agents", "architectures", "environments", "exploration_policies", "filters")
OF_PRESETS += ("graph_managers", "memories")
"""The rooms whose descriptions a preset is made of."""


def kind_of_name(name):
    """Constants, then classes, then functions; each in alphabetical order."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_exactly_what_the_package_offers(package):
    module = importlib.import_module(package)
    assert len(module.__doc__) > 60
    assert module.__all__ == sorted(set(module.__all__), key=kind_of_name)
    imported = imports_for_type_checkers(inspect.getsource(module))
    modules = {each.name for each in pkgutil.iter_modules(module.__path__)}
    if package == "coach_rl.presets":  # whose public names are files
        helpers = {Path(file).stem for each in own_extensions() for file in each.helpers}
        assert {*module.__all__, *helpers} == {name for name in modules if name.islower()}
        return
    own = {name for name in module.__all__ if name in vars(module) and name.startswith("__")}
    more = set(public_names()) if package == "coach_rl" else set()
    assert set(module.__all__) == {*imported, *own, *more}
    assert imported or package.startswith("coach_rl.extensions")  # some have only offers
    assert not modules & set(imported), "a module of that name would hide it"
    assert set(imported) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_there_and_documented(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        thing = getattr(module, name, None) or importlib.import_module(f"{package}.{name}")
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__module__.startswith(package)
        if inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing):
            assert inspect.getdoc(thing), f"{package}.{name} has no docstring"


def test_all_that_describes_an_experiment_can_be_imported_from_the_top():
    offered = set()
    for package in PACKAGES:
        room = importlib.import_module(package)
        if package.startswith(tuple(f"coach_rl.{name}" for name in OF_PRESETS)):
            for name in room.__all__:
                thing = getattr(room, name)
                described = inspect.isclass(thing) and is_dataclass(thing)
                if described and name.endswith(("Parameters", "Filter", "Noise", "Head")):
                    assert getattr(coach_rl, name, None) is thing, name
                    offered.add(name)
    assert len(offered) > 50


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError):
        coach_rl.PPOParameters  # noqa: B018
    with pytest.raises(ImportError):
        from coach_rl.agents import Agnet  # noqa: F401


def test_packages_and_the_list_of_presets_load_no_library():
    program = f"""
import importlib, sys
from coach_rl.cli.main import main
for package in {PACKAGES}:
    importlib.import_module(package)
assert main(["-l"]) == 0
heavy = {{"torch", "numpy", "scipy", "gymnasium", "mujoco", "rich", "jinja2"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_version_is_one():
    assert coach_rl.__version__ == importlib.metadata.version("coach-rl")
    citation = Path(__file__).parent.parent / "CITATION.cff"
    assert f"\nversion: {coach_rl.__version__}\n" in citation.read_text()
