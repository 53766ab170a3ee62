"""Writes docs/tutorial.ipynb from docs/tutorial.md: text, programs, and commands behind a `!`."""

import json
import re
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def notebook(markdown: str) -> str:
    """The page as a notebook; files that it names are written by their cells."""
    cells, end = [], 0
    for block in FENCE.finditer(markdown):
        cells.append(_cell("markdown", markdown[end : block.start()]))
        language, file, program = block.groups()
        if file:
            program = f"%%writefile {file}\n{program}"
        elif language == "bash":
            program = re.sub(r"^", "!", program.rstrip(), flags=re.MULTILINE)
        cells.append(_cell("code", program))
        end = block.end()
    cells.append(_cell("markdown", markdown[end:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cell(kind: str, text: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}}
    cell["source"] = text.strip().splitlines(keepends=True)
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    PAGE.with_suffix(".ipynb").write_text(notebook(PAGE.read_text()))
