"""Names that are imported at their first use."""

import importlib
import importlib.util
import sys

import pytest

import coach_rl

PACKAGE = """
from typing import TYPE_CHECKING
from coach_rl.core.lazy_names import lazy_names
if TYPE_CHECKING:
    from lazy_package_of_mine.inner import Thing
else:
    __getattr__, __dir__ = lazy_names(__name__)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "lazy_package_of_mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("lazy_package_of_mine")]:
        del sys.modules[name]


def test_attribute_error_while_importing_is_the_reason_of_the_import_error(package):
    (package / "inner.py").write_text("None.glGetError")
    with pytest.raises(ImportError) as caught:
        from lazy_package_of_mine import Thing  # noqa: F401
    assert isinstance(caught.value.__cause__, AttributeError)


def test_unknown_name_is_an_attribute_error(package):
    (package / "inner.py").write_text("Thing = 1")
    import lazy_package_of_mine

    assert lazy_package_of_mine.Thing == 1
    assert not hasattr(lazy_package_of_mine, "Other")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PPO", "PPOAgentParameters"),
        ("VecNormalize", "ObservationNormalizationFilter or RewardReturnScalingFilter"),
        ("PPOAgentParams", "PPOAgentParameters"),
    ],
)
def test_unknown_name_error_names_what_was_meant(name, meant):
    with pytest.raises(AttributeError, match=f"'{name}'; did you mean {meant}"):
        getattr(coach_rl, name)
    assert not hasattr(coach_rl, name)
    with pytest.raises(ImportError, match=f"'{name}' from 'coach_rl'; did you mean {meant}"):
        exec(f"from coach_rl import {name}")


def test_unknown_module_of_a_package_is_not_found():
    with pytest.raises(ModuleNotFoundError, match="nothing_of_ours"):
        importlib.import_module("coach_rl.nothing_of_ours")
    assert importlib.util.find_spec("coach_rl.nothing_of_ours") is None
