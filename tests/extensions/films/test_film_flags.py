"""Mistakes in flags of films: one line on stderr, exit code 2, and nothing is made."""

import pytest

from tests.cli.conftest import somewhere_else
from tests.cli.test_errors import check_one_line

__all__ = ["somewhere_else"]
OF_FILMS = [
    ("-p FAKE --render", "unknown flag '--render'; did you mean '-dg' or '-dm'?"),
    ("-p FAKE --evaluate -dg", "`coach evaluate` ignores -dg"),
    ("-p FAKE --video_skip 2", "--video_skip has no effect without -dg or -dm"),
    ("-p FILMED -lvl goal_point_mass -dg", "no pictures; leave out the video flags (-dg, -dm)"),
    ("-p FILMED -dg --video_frames 1", "VideoParameters.max_frames must be int >= 2, got 1"),
    ("-p FILMED -dg --video_skip 0", "argument --video_skip"),
]


@pytest.mark.parametrize(("words", "message"), OF_FILMS)
def test_mistake_in_flags_of_films_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_one_line(words, message, capsys)
