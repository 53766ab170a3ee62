import pytest
from rich.console import Console

from coach_rl.telemetry.tables import (
    Column,
    csv_text,
    html,
    markdown,
    plain_lines,
    rich_table,
    table,
    written,
)

COLUMNS = (
    Column("name", lambda item: item[0], is_text=True),
    Column("steps", lambda item: item[1], "{:,}".format, missing="-"),
    Column("note", lambda item: item[2], is_optional=True),
)
ITEMS = [("a", 1000, None), ("b", None, "")]


def test_markdown_values_formatted_and_optional_column_left_out():
    assert markdown(table(COLUMNS, ITEMS)).split("\n") == [
        "| name | steps |",
        "| --- | ---: |",
        "| a | 1,000 |",
        "| b | - |",
    ]
    assert "note" in markdown(table(COLUMNS, [("a", 1, "x")]))


def test_markdown_aligned_pads_cells():
    lines = markdown(written(("trial", "v"), [(1, "long")]), aligned=True).split("\n")
    assert lines == ["| trial | v    |", "| ----- | ---- |", "| 1     | long |"]


def test_csv_has_values_not_formats():
    assert csv_text(table(COLUMNS, ITEMS)) == "name,steps\na,1000\nb,\n"


def test_html_hostile_cells_are_escaped_and_long_ones_may_break():
    page = html(
        written(("<th>", "n"), [("<script>", 'x"y'), ("b", "l" * 25)], texts=1, title="<t>")
    )
    assert "<script>" not in page
    assert '<th scope="row" class="text">&lt;script&gt;</th><td>x&#34;y</td>' in page
    assert '<th scope="col" class="text">&lt;th&gt;</th><th scope="col">n</th>' in page
    assert "<caption>&lt;t&gt;</caption>" in page
    assert f'<td class="long">{"l" * 25}</td>' in page


@pytest.mark.parametrize("folded", [None, 0])
def test_rich_table_has_no_control_characters(folded):
    console = Console(width=60)
    with console.capture() as shown:
        console.print(rich_table(written(("run", "n"), [("\x1b[2J", 3)], texts=1), folded=folded))
    assert "\x1b[2J" not in shown.get()
    assert "3" in shown.get()


def test_plain_lines_wide_cell_moves_its_own_line_alone():
    rows = [("a", "1"), ("b" * 9, "2"), ("cc", "")]
    lines = plain_lines(written(("", ""), rows), widest=3)
    assert lines == ["a   1", "bbbbbbbbb  2", "cc"]
