"""Writes the tables of docs/metrics.md from the metrics.toml of each room and extension."""

import re
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "metrics.md"
KINDS = "Kinds of records"
"""The table of kinds, whose columns are others."""
TABLE = re.compile(r"<!-- metrics: ([^\n]*) -->\n.*?<!-- /metrics -->", re.DOTALL)


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


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
