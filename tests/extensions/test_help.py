"""`coach --help` with the commands of all extensions."""

from pathlib import Path

import pytest

from tests.cli.commands import coach

HERE = Path(__file__).parent


def test_help_is_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """After a wanted change: `coach --help > tests/extensions/help.txt`."""
    with pytest.raises(SystemExit) as caught:
        coach("--help")
    assert caught.value.code == 0
    assert capsys.readouterr().out == (HERE / "help.txt").read_text()
