"""`coach new`: the files that it writes run, and their tests pass."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import coach


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", *words], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_written_files_pass_their_tests(capsys):
    expected = set()
    for kind, name, module in (
        ("preset", "Docking_PPO", "Docking_PPO"),
        ("environment", "HarbourBasin", "harbour_basin"),
        ("agent", "slow_q", "slow_q"),
    ):
        assert coach("new", kind, name) == 0
        assert f"written:    {module}.py, test_{module}.py\n" in capsys.readouterr().out
        expected |= {f"{module}.py", f"test_{module}.py"}
        assert {path.name for path in Path().iterdir()} == expected
    files = sorted(expected)
    run("pytest", "-q", "-p", "no:cacheprovider", *(each for each in files if "test_" in each))
    config = str(Path(__file__).parents[2] / "pyproject.toml")
    run("ruff", "check", "--select", "E,F,W,UP,B,SIM", "--config", config, "--no-cache", *files)
    run("ruff", "format", "--check", "--no-cache", "--config", config, *files)


def test_written_environment_is_checked(capsys):
    assert coach("new", "environment", "Docking", "--to", "there") == 0
    assert Path("there/docking.py").exists()
    assert "check docking:Docking" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("preset Mine", "Mine.py exists, and nothing is written; choose another name, or"),
        ("agent tested", "test_tested.py exists, and nothing is written"),
        (
            "environment 3rd",
            "'3rd' cannot name an environment; use letters, digits and",
        ),
        ("preset class", "'class' cannot name a preset"),
        *(
            (f"{kind} {name}", f"'{name}' cannot name ")
            for kind in ("environment", "agent", "preset")
            for name in ("_", "__", "_1", "True_", "None_")
        ),
        ("environment Class", "'Class' cannot name an environment"),
        ("agent " + "a" * 253, "cannot write to .: File name too long; choose another folder"),
        ("agent Other --to a\0b", "cannot write to a\\x00b: embedded null byte"),
        ("agent Link", "link.py exists, and nothing is written"),
        ("agent Linked", "test_linked.py exists, and nothing is written"),
        ("environment random", "there is a module random already"),
        ("agent numpy", "there is a module numpy already"),
        ("network Mine", "invalid choice: 'network'"),
        ("preset", "the following arguments are required: NAME"),
        ("preset Other --to Mine.py", "cannot write to Mine.py: "),
    ],
)
def test_new_invalid_input_error(words, message, capsys):
    Path("Mine.py").touch()
    Path("test_tested.py").touch()
    for link in ("link.py", "test_linked.py"):
        Path(link).symlink_to("outside.py")
    before = {path.name for path in Path().iterdir()}
    assert coach("new", *words.split(" ")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert {path.name for path in Path().iterdir()} == before
    assert not Path("Mine.py").read_text()
