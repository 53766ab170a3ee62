"""Text of files in a terminal: nothing in it steers the terminal."""

import pytest

from coach_rl.core.errors import in_one_line
from coach_rl.core.shown_text import one_line, printable, shortened, shown_error, shown_value


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


def test_shortened_keeps_both_ends() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("a" * 5 + "b" * 5, 4) == "aa [... of 10 characters ...] bb"


class Failing(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("a\n b"), "ValueError: a b"),
        (ValueError(), "ValueError"),
        (Failing(), "Failing: a value of Failing, whose __str__ raises SystemExit"),
    ],
)
def test_error_is_shown_in_one_line(error: Exception, shown: str) -> None:
    assert shown_error(error) == shown
    assert in_one_line(error_with_place(error)).startswith(f"{shown} (")


def error_with_place(error: Exception) -> Exception:
    """The error after it was raised somewhere."""
    try:
        raise error
    except type(error) as raised:
        return raised


def test_value_without_text_is_shown() -> None:
    assert shown_value(Failing()) == "a value of Failing, whose __repr__ raises SystemExit"
    assert len(shown_error(ValueError("far " * 1_000_000))) < 2_100
