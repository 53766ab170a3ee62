"""`coach describe` of a preset with long values."""

import pytest

from tests.cli.commands import coach


def test_describe_keeps_columns_narrow_where_a_value_is_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert coach("describe", "AntMaze_HIRO") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("  levels  ") and "(LevelParameters, " in line for line in lines)
    storage, *_ = (line for line in lines if line.startswith("  levels.0.agent.memory.storage "))
    assert storage.index("cpu: in ordinary memory") < 150
