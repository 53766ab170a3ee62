"""Text of files in a terminal: nothing in it steers the terminal."""

import pytest

from coach_rl.core.shown_text import one_line, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hopper, 2 µm ✓ 雨", "hopper, 2 µm ✓ 雨"),
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b2J", r"\x9b2J"),
        ("a\nb\r\tc\x7f", r"a\nb\r\tc\x7f"),
        ("\u202egnp\u2028", r"\u202egnp\u2028"),
        ("\udce9", r"\udce9"),
    ],
)
def test_printable_controls_are_escaped_and_other_text_kept(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_one_line_line_ends_are_spaces() -> None:
    assert one_line(" a\n b\x1b[0m\r\n") == r"a b\x1b[0m"
