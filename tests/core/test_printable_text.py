"""Text of files in a terminal: nothing in it steers the terminal."""

import pytest

import coach_rl as rl
from coach_rl.core.errors import ParameterError, in_one_line
from coach_rl.core.shown_text import (
    one_line,
    printable,
    printable_lines,
    shortened,
    shown_error,
    shown_value,
)
from coach_rl.telemetry.tables import csv_cell, without_tags
from tests.refusals import check_refused


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
        (ValueError("\x1b[2J \ud800"), r"ValueError: \x1b[2J \ud800"),
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


@pytest.mark.parametrize(
    ("shown_by", "text", "shown"),
    [
        (one_line, " a\n b\x1b[0m\r\n", r"a b\x1b[0m"),
        (printable_lines, "a\x1b\nb\r", "a\\x1b\nb\\r"),
        (without_tags, "a <script>", "a &lt;script>"),
        # no formula
        (csv_cell, "=1+1", "'=1+1"),
        (csv_cell, "+1", "'+1"),
        (csv_cell, "-1", "'-1"),
        (csv_cell, "@x", "'@x"),
        (csv_cell, "a=b", "a=b"),
        (csv_cell, "walk/x\n\x1b", "walk/x\\n\\x1b"),
    ],
)
def test_text_is_shown(shown_by, text, shown):
    assert shown_by(text) == shown


@pytest.mark.parametrize("name", ["\x1b[2J", "a\nb", "a\x00", "\u202eab", "\ud800", "\u200b"])
@pytest.mark.parametrize(
    "kind",
    [
        rl.PPOAgentParameters,
        rl.DQNAgentParameters,
        rl.SACAgentParameters,
        rl.UniformAgentParameters,
    ],
)
def test_name_that_is_not_printable_is_refused(kind: type, name: str) -> None:
    message = f"{kind.__name__}.name must be printable text"
    check_refused(lambda: kind(name=name), ParameterError, message)
