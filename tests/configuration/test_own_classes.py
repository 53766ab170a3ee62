"""Near misses of `module:Class`: the environments of the files beside that may be meant."""

import pytest

from coach_rl import GymnasiumParameters, find_preset
from coach_rl.configuration.own_classes import classes_meant, environment_classes
from coach_rl.core.errors import ConfigurationError

SOURCE = """
import gymnasium
from gymnasium import Env, Wrapper

class Dune(gymnasium.Env[int, int]): ...
class Slope(Env): ...
class Slower(gymnasium.Wrapper): ...
class Settings: ...
class Wind(Environmental): ...
class Steep(Slope): ...
def made(size: int = 3) -> gymnasium.Env: ...
def unsaid(): ...
"""
EVERY = ["Dune", "Slope", "Slower", "Steep", "made"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "dune.py").write_text(SOURCE)
    (tmp_path / "notes.py").write_text("class Dune(")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("dune.Dune", ["dune:Dune"]),
        ("dune.py:Slope", ["dune:Slope"]),
        ("dune.py", [f"dune:{name}" for name in EVERY]),
        ("dune", [f"dune:{name}" for name in EVERY]),
        ("Dune", ["dune:Dune"]),
        ("Dune()", ["dune:Dune"]),
        ("dune:Dune(size=3)", ["dune:Dune"]),
        ("./dune.py:Steep", ["dune:Steep"]),
        ("dune/Dune", ["dune:Dune"]),
        ("dune::Dune", ["dune:Dune"]),
        ("dun:Dune", ["dune:Dune"]),  # the module is misspelt
        ("dune:Dun", []),  # the class is, which the module itself answers
        ("Settings", []),
        ("hill.Dune", []),
        ("CartPole-v1", []),
        ("", []),
    ],
)
def test_classes_meant_by_a_near_miss(folder, text, meant):
    assert classes_meant(text, folder) == meant


def test_environments_of_a_file_derive_from_one(folder):
    assert environment_classes(folder / "dune.py") == EVERY
    assert environment_classes(folder / "missing.py") == []


def test_preset_that_is_an_environment_is_answered_with_the_command_for_it(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigurationError, match="`coach train PPO -lvl dune:Dune`"):
        find_preset("dune:Dune")


@pytest.mark.parametrize("level", ["dun:Dune", "./dune.py:Dune", "dune.py:Dune", "dune::Dune"])
def test_environment_in_a_module_of_another_name_is_answered_with_its_own(
    folder, monkeypatch, level
):
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigurationError, match=r"(write|did you mean) '?dune:Dune"):
        GymnasiumParameters(level=level).build(num_envs=1)
