"""`coach card` writes a folder for a model hub."""

from pathlib import Path

import pytest

from tests.cli.commands import coach
from tests.cli.conftest import somewhere_else
from tests.small_runs import FAKE

__all__ = ["somewhere_else"]


@pytest.mark.filterwarnings("default:no episode is filmed", "default:the card has no export")
def test_card_is_a_new_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert coach("-p", str(FAKE), "-ntb", "-e", "walk") == 0
    assert coach("card", "experiments/walk", "--episodes", "2") == 0
    out, err = capsys.readouterr()
    assert "hf upload USER/NAME card_walk " in out
    assert "no episode is filmed: episodes cannot be filmed or played: " in err
    assert {"README.md", "manifest.json", "checkpoints"} <= {
        each.name for each in Path("card_walk").iterdir()
    }
    assert coach("card", "experiments/walk") == 2
    assert "card_walk exists already; delete it, or name another with --to" in (
        capsys.readouterr().err
    )
