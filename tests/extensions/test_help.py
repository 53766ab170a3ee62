"""`coach --help` with the commands of all extensions."""

import re
from pathlib import Path

import pytest

from coach_rl.cli.terminal import program
from tests.cli.commands import coach

HERE = Path(__file__).parent


def test_help_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """After a wanted change: `coach --help > tests/extensions/help.txt`."""
    with pytest.raises(SystemExit) as caught:
        coach("--help")
    assert caught.value.code == 0
    assert capsys.readouterr().out == (HERE / "help.txt").read_text()


def test_coach_alone_shows_first_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert coach() == 0
    out, err = capsys.readouterr()
    shown = re.findall(rf"^  {re.escape(program('coach'))} (.*?)  ", out, re.MULTILINE)
    assert shown == [
        "list",
        "play trained:Mujoco_PPO/half_cheetah",
        "train CartPole_PPO",
        "play experiments/CartPole_PPO",
    ]
    assert err == ""
