"""Words for `coach play` that it is suggested for."""

import pytest

from tests.cli.conftest import somewhere_else
from tests.cli.test_errors import check_one_line

__all__ = ["somewhere_else"]
OF_PLAY = [
    ("film FAKE", "unknown command 'film'; did you mean 'play'"),
    ("-p FAKE --play", "unknown flag '--play'; did you mean 'coach play'"),
]


@pytest.mark.parametrize(("words", "message"), OF_PLAY)
def test_mistake_for_play_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_one_line(words, message, capsys)
