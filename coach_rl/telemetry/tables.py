"""Tables as values, and their writers: Markdown, HTML, CSV, plain text and rich.

columns = (
    Column("variant", lambda run: run.variant, is_text=True),
    Column("steps", lambda run: run.environment_steps, "{:,}".format),
)
print(markdown(table(columns, runs)))
"""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rich.table import Table as RichTable

from coach_rl.core.shown_text import printable

_LONG = 24
"""Characters from which a cell of HTML may be broken into lines."""
_HTML = """\
<div class="wide" role="region" aria-label="{{ table.title }}" tabindex="0"><table>
<caption>{{ table.title }}</caption>
<thead><tr>
{%- for column in table.columns %}<th scope="col"{{ kind(column, "") }}>{{ column.title }}</th>
{%- endfor %}</tr></thead>
<tbody>
{% for row in table.cells() %}<tr>
{%- for cell in row %}{% set column = table.columns[loop.index0] %}
{%- if loop.first %}<th scope="row"{{ kind(column, "") }}>{{ cell }}</th>
{%- else %}<td{{ kind(column, cell) }}>{{ cell }}</td>{% endif %}
{%- endfor %}</tr>
{% endfor %}</tbody>
</table></div>"""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    value: Callable[[Any], object] = str
    """The value of an item in this column; None or an empty text where it has none."""
    shown: Callable[[Any], object] = str
    """Text of a value; for a terminal alone, anything that rich draws."""
    is_text: bool = False
    """If True, its cells are words, aligned to the left; numbers are aligned to the right."""
    is_optional: bool = False
    """If True, the column is left out where no item has a value."""
    missing: str = ""
    """Text of a cell without a value."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, whose values are shown as its columns have it."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[object]]
    """A value per column, in each row."""
    title: str = ""

    def cells(self) -> list[list[str]]:
        """The text of each cell, row by row."""
        return [
            [str(_shown(column, of)) for column, of in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]


def table(columns: Iterable[Column], items: Iterable[object], *, title: str = "") -> Table:
    """The table with a row for each item, without optional columns that would be empty."""
    columns = tuple(columns)
    rows = [[column.value(item) for column in columns] for item in items]
    kept = [
        at
        for at, column in enumerate(columns)
        if not column.is_optional or any(row[at] not in (None, "") for row in rows)
    ]
    return Table(
        columns=tuple(columns[at] for at in kept),
        rows=[[row[at] for at in kept] for row in rows],
        title=title,
    )


def written(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    texts: int = 0,
    optional: Collection[str] = (),
    title: str = "",
) -> Table:
    """A table of rows that are there already.

    Args:
        head: Titles of the columns.
        rows: Values in the order of the columns.
        texts: Number of leading columns whose cells are words.
        optional: Titles of columns that are left out where they would be empty.
        title: The table's title.
    """
    columns = (
        Column(name, itemgetter(at), is_text=at < texts, is_optional=name in optional)
        for at, name in enumerate(head)
    )
    return table(columns, rows, title=title)


def markdown(table: Table, *, aligned: bool = False) -> str:
    """The table in Markdown.

    Args:
        table: The table.
        aligned: Whether to pad cells for people who read the text itself, all to the left.
    """
    head = [column.title for column in table.columns]
    cells = table.cells()
    if aligned:
        widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
        rule = ["-" * width for width in widths]
        lines = [
            [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
            for row in (head, rule, *cells)
        ]
    else:
        lines = [head, ["---" if each.is_text else "---:" for each in table.columns], *cells]
    return without_tags("\n".join(f"| {' | '.join(line)} |" for line in lines))


def plain_lines(table: Table, *, widest: int) -> list[str]:
    """The rows in lines of text without a head; a cell longer than `widest` moves its own line."""
    cells = table.cells()
    widths = [
        max((len(cell) for cell in column if len(cell) <= widest), default=0)
        for column in zip(*cells, strict=True)
    ]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def rich_table(table: Table, *, folded: int | None = None, **style: Any) -> RichTable:
    """The table for a terminal, without control characters.

    Args:
        table: The table.
        folded: Number of leading columns that are broken into lines on a narrow terminal, where
            the others are cut; None for all.
        style: Arguments of rich's own table.
    """
    shown = RichTable(title=table.title or None, title_justify="left", **style)
    for at, column in enumerate(table.columns):
        shown.add_column(
            column.title,
            justify="left" if column.is_text else "right",
            overflow="fold" if folded is None or at < folded else "ellipsis",
            no_wrap=folded is not None and at >= folded,
        )
    for row in table.rows:
        cells = (_shown(column, of) for column, of in zip(table.columns, row, strict=True))
        shown.add_row(*(printable(cell) if isinstance(cell, str) else cell for cell in cells))
    return shown


def csv_text(table: Table) -> str:
    """The table's values, not as they are shown, as comma-separated text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in ([column.title for column in table.columns], *table.rows):
        writer.writerow([csv_cell(each) if isinstance(each, str) else each for each in row])
    return text.getvalue()


def html(table: Table) -> str:
    """The table in HTML, with its title as caption; it scrolls where a page is narrow."""
    from jinja2 import Environment
    from markupsafe import Markup

    def kind(column: Column, cell: str) -> str:
        kinds = ["text"] * column.is_text + ["long"] * (len(cell) > _LONG)
        return Markup(' class="{}"').format(" ".join(kinds)) if kinds else ""

    template = Environment(autoescape=True).from_string(_HTML)
    return Markup(template.render(table=table, kind=kind))


def _shown(column: Column, value: object) -> Any:
    return column.missing if value is None or value == "" else column.shown(value)


def without_tags(text: str) -> str:
    """The text for a page in Markdown, where HTML in it is shown and not followed."""
    return text.replace("<", "&lt;")


def csv_cell(text: str) -> str:
    """The text in one line that spreadsheets show, and don't compute as a formula."""
    text = printable(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
