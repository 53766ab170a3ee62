"""`coach describe` of a preset with functions."""

import re

import pytest

from tests.cli.commands import coach
from tests.cli.conftest import somewhere_else
from tests.cli.test_errors import check_one_line


def test_describe_shows_functions_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert coach("describe", "PointMass_PPO_Skills") == 0
    assert "rewards  (right, up, left, down)  " in " ".join(
        re.sub(" {2,}", "  ", line) for line in capsys.readouterr().out.splitlines()
    )


__all__ = ["somewhere_else"]


def test_preset_of_skills_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    check_one_line(
        "-p skills", "unknown preset 'skills'; did you mean 'PointMass_PPO_Skills'?", capsys
    )
