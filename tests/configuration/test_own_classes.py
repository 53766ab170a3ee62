"""Near misses of `module:Class`: the environments of the files beside that may be meant."""

import pytest

from coach_rl.configuration.own_classes import classes_meant, environment_classes

SOURCE = """
import gymnasium
from gymnasium import Env, Wrapper

class Dune(gymnasium.Env[int, int]): ...
class Slope(Env): ...
class Slower(gymnasium.Wrapper): ...
class Settings: ...
class Wind(Environmental): ...
"""


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
        ("dune.py", ["dune:Dune", "dune:Slope", "dune:Slower"]),
        ("dune", ["dune:Dune", "dune:Slope", "dune:Slower"]),
        ("Dune", ["dune:Dune"]),
        ("Settings", []),
        ("hill.Dune", []),
        ("CartPole-v1", []),
        ("", []),
    ],
)
def test_classes_meant_by_a_near_miss(folder, text, meant):
    assert classes_meant(text, folder) == meant


def test_environments_of_a_file_derive_from_one(folder):
    assert environment_classes(folder / "dune.py") == ["Dune", "Slope", "Slower"]
    assert environment_classes(folder / "missing.py") == []
