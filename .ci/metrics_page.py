"""Writes the tables of metrics in docs/ from the metrics.toml of each room and extension."""

import re
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DOCS = CHECKOUT / "docs"
PAGES = tuple(sorted(DOCS.rglob("*.md")))
KINDS = "Kinds of records"
"""The table of kinds, whose columns are others."""
TABLE = re.compile(r"<!-- metrics: ([^\n]*) -->\n\n(?:\|[^\n]*\n)*")
"""A table and the mark before it."""


def descriptions() -> dict[str, dict[str, list[str]]]:
    """Unit and meaning by metric, by table; several names of one entry are separated by commas."""
    tables: dict[str, dict[str, list[str]]] = {}
    package = CHECKOUT / "coach_rl"
    files = sorted(package.glob("*/metrics.toml"))
    for path in [*files, *sorted(package.glob("extensions/*/metrics.toml"))]:
        for title, entries in tomllib.loads(path.read_text()).items():
            known = tables.setdefault(title, {})
            assert not known.keys() & entries.keys(), f"{path} repeats an entry of another file"
            known |= entries
    return tables


def meaning(unit: str, text: str, which: str = "") -> str:
    """Text of a metric, with its unit and which of its numbers it is in brackets."""
    notes = "; ".join(filter(None, (unit, which)))
    return f"{text} ({notes})" if notes else text


def rendered(markdown: str, up: str = "") -> str:
    """A page with its tables made from the descriptions; links have `up` before them."""
    tables = descriptions()

    def table(found: re.Match[str]) -> str:
        lines = [["Kind", "When", "Carries"]] if found[1] == KINDS else [["Name", "Meaning"]]
        lines.append(["---"] * len(lines[0]))
        for names, values in tables[found[1]].items():
            name = ", ".join(f"`{each}`" for each in names.split(", "))
            lines.append([name, *(values if found[1] == KINDS else [meaning(*values)])])
        rows = "".join(f"| {' | '.join(line)} |\n" for line in lines)
        rows = re.sub(r"\]\((?=[\w/]+\.md)", f"]({up}", rows)
        return f"<!-- metrics: {found[1]} -->\n\n{rows}"

    return TABLE.sub(table, markdown)


def rewritten(page: Path) -> str:
    """The page with its tables as they should be."""
    return rendered(page.read_text(), "../" * (len(page.relative_to(DOCS).parts) - 1))


if __name__ == "__main__":
    for each in PAGES:
        each.write_text(rewritten(each))
