"""Writes the tables of metrics in docs from the metrics.toml of rooms and extensions."""

import re
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
DOCS = CHECKOUT / "docs"
KINDS = "Kinds of records"
"""The table of kinds, whose columns are others."""
TABLE = re.compile(r"<!-- metrics: ([^\n]*) -->\n.*?<!-- /metrics -->", re.DOTALL)


def descriptions() -> dict[str, dict[str, list[str]]]:
    """Unit and meaning by metric, by table; several names of one entry are separated by commas."""
    tables: dict[str, dict[str, list[str]]] = {}
    for path in sorted((CHECKOUT / "coach_rl").rglob("metrics.toml")):
        found = tomllib.loads(path.read_text())
        assert not tables.keys() & found.keys(), f"{path} repeats a table of another file"
        tables |= found
    return tables


def rendered(markdown: str) -> str:
    """A page with its tables made from the descriptions."""
    tables = descriptions()

    def table(found: re.Match[str]) -> str:
        entries = tables[found[1]]
        heads = ["Name", "Unit", "Meaning", "Which"]
        if found[1] == KINDS:
            heads = ["Kind", "When", "Carries"]
        width = 1 + max(map(len, entries.values()))
        lines = [heads[:width], ["---"] * width]
        for names, values in entries.items():
            name = ", ".join(f"`{each}`" for each in names.split(", "))
            lines.append([name, *values, *[""] * (width - 1 - len(values))])
        rows = (re.sub(r" +", " ", f"| {' | '.join(line)} |") for line in lines)
        return "\n".join([f"<!-- metrics: {found[1]} -->", "", *rows, "", "<!-- /metrics -->"])

    return TABLE.sub(table, markdown)


def pages() -> list[Path]:
    """The pages with tables of metrics: metrics.md, and those of extensions."""
    return [page for page in sorted(DOCS.glob("*.md")) if TABLE.search(page.read_text())]


if __name__ == "__main__":
    for page in pages():
        page.write_text(rendered(page.read_text()))
