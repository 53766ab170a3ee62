"""Extensions of installed packages: their commands and components, found by their tables."""

import shutil
import sys
from pathlib import Path

import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.environments import level_names, make, parameters
from tests.cli.commands import coach, install_gaits, only_run
from tests.small_runs import FAKE, manifest_of

TABLE = """
summary = "Gaits"
flags = "gaits.commands:FOR_RUNS"

[names]
"gaits.agents" = ["CalmAgentParameters", "no_component"]
"gaits.nothing" = ["LostParameters"]

[tasks]
"gaits.worlds:GaitParameters" = ["trot", "walk"]
"gaits.worlds:PaceParameters" = ["pace"]

[commands.gait]
arguments = "RUN [flags]"
description = "Print the gait of a run."
run = "gaits.commands:gait"
flags = "gaits.commands:FLAGS"

[commands."gait table"]
arguments = "[flags]"
description = "Print all gaits."
run = "gaits.commands:table"

[commands.train]
arguments = "[flags]"
description = "A name that is taken."
run = "gaits.commands:table"
"""
AGENTS = """
from coach_rl import UniformAgentParameters
from coach_rl.core.parameter_classes import parameter_class


@parameter_class
class CalmAgentParameters(UniformAgentParameters):
    calm: float = 0.5


def no_component(): ...
"""
COMMANDS = """
from coach_rl.cli.parser import Flag

FLAGS = (Flag("RUN", "the run"), Flag("--fast", "at once"))
FOR_RUNS = (
    Flag("--gait WORD", "sets the learning rate", float, sets="agent.learning_rate", of="train"),
)


def gait(given):
    print("gait", given.RUN if hasattr(given, "RUN") else given.run, given.fast)
    return 3


def table(given):
    print("all gaits")
    return 0
"""
WORLDS = """
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.environments.toy import PointMassParameters


@parameter_class
class GaitParameters(PointMassParameters):
    level: str
    slope: float = 0.0


@parameter_class
class PaceParameters(PointMassParameters):
    slope: float = 0.0
"""
ENTRIES = """
[coach.extensions]
gaits = gaits
testing = gaits
broken = broken
tableless = tableless
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    site = tmp_path / "site"
    for name, table in {"gaits": TABLE, "broken": "summary =", "tableless": None}.items():
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").write_text("")
        if table is not None:
            (site / name / "extension.toml").write_text(table)
    (site / "gaits" / "agents.py").write_text(AGENTS)
    (site / "gaits" / "commands.py").write_text(COMMANDS)
    (site / "gaits" / "worlds.py").write_text(WORLDS)
    install_gaits(site, ENTRIES, monkeypatch)
    return site / "gaits"


def test_list_has_extensions_their_commands_and_problems(capsys):
    assert coach("-l") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in (
        "gaits Gaits (gaits 1.2)",
        "coach gait command (gaits 1.2)",
        "coach train cannot be used: coach_rl has one of that name (gaits 1.2)",
        "testing (gaits 1.2) extension that cannot be used: coach_rl has one of that name",
    ):
        assert line in lines
    problems = [line for line in lines if line.startswith(("broken ", "tableless "))]
    assert len(problems) == 2
    assert all("extension that cannot be used: the extension" in line for line in problems)
    assert "gaits" not in sys.modules


def test_commands_of_an_extension_have_flags_help_and_errors(capsys):
    assert coach("gait", "here", "--fast") == 3
    assert capsys.readouterr().out == "gait here True\n"
    assert coach("gait", "table") == 0
    assert capsys.readouterr().out == "all gaits\n"
    assert coach("gait", "here", "--slow") == 2
    assert "unknown flag '--slow'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        coach("gait", "--help")
    assert "Print the gait of a run." in capsys.readouterr().out


def test_component_of_an_extension_is_found_and_recorded(capsys):
    changes = "agent=CalmAgent(calm=0.25)"
    assert coach("train", FAKE, "-ntb", "--steps", 20, "-cp", changes) == 0
    agent = manifest_of(only_run())["parameters"]["agent"]
    assert agent["$type"] == "gaits.agents:CalmAgentParameters"
    assert agent["calm"] == 0.25
    assert coach("resume", only_run(), "--steps", 40) == 0
    assert coach("train", FAKE, "-ntb", "-cp", "agent=Lost()") == 2
    assert "Lost needs the module 'gaits.nothing'" in capsys.readouterr().err
    assert coach("train", FAKE, "-ntb", "-cp", "agent=no_component()") == 2
    assert "unknown component 'no_component'" in capsys.readouterr().err


def test_tasks_of_an_extension_are_found_by_name():
    assert {"trot", "walk", "pace"} <= set(level_names())
    assert parameters("trot", slope=0.5) == sys.modules["gaits.worlds"].GaitParameters(
        level="trot", slope=0.5
    )
    assert make("walk", num_envs=3).num_envs == 3
    assert parameters("pace", max_episode_steps=7).max_episode_steps == 7
    with pytest.raises(ParameterError, match="'walk' has no parameter 'slop'"):
        parameters("walk", slop=0.5)


def forget(package: Path) -> None:
    """Let the package's commands be read again, also where size and second are as before."""
    del sys.modules["gaits.commands"]
    shutil.rmtree(package / "__pycache__", ignore_errors=True)


def test_flag_of_an_extension_changes_the_experiment(package, capsys):
    assert coach("train", FAKE, "-ntb", "--steps", 20, "--gait", 0.5) == 0
    manifest = manifest_of(only_run())
    assert manifest["parameters"]["agent"]["learning_rate"] == 0.5
    assert coach("resume", only_run(), "--gait", 0.5) == 2
    assert "`coach resume` ignores --gait" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        coach("train", "--gait", 0.5, "--help")
    assert "--gait WORD" in capsys.readouterr().out
    assert coach("train", FAKE, "--gate", 0.5) == 2
    assert "unknown flag '--gate'; did you mean '--gait'?" in capsys.readouterr().err

    commands = package / "commands.py"
    commands.write_text(commands.read_text().replace("--gait WORD", "--seed WORD"))
    forget(package)
    assert coach("train", FAKE, "--gait", 0.5) == 2
    error = "the extension 'gaits' (gaits 1.2) declares the flag --seed, which is taken"
    assert error in capsys.readouterr().err
    commands.write_text("FOR_RUNS = 1 / 0")
    forget(package)
    assert coach("train", FAKE, "--gait", 0.5) == 2
    assert "flags that cannot be read, gaits.commands:FOR_RUNS" in capsys.readouterr().err
