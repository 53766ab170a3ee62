"""Writes docs/tutorial.ipynb from docs/tutorial.md.

Text and programs stay as they are, the installation is a cell that suits hosted notebooks, too, and
commands run in the kernel's Python, whose environment may be on no PATH, in plain lines: a panel
that is redrawn would be written into the notebook hundreds of times.
"""

import json
import re
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "docs" / "tutorial.md"
FENCE = re.compile(r"^```(\w+)(?: title=\"([\w.]+)\")?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
INSTALLATION = """\
# Into the Python of this notebook: from the checkout that it lies in, else from the repository.
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

checkout = Path.cwd().parent
source = "coach_rl[plot] @ git+%s"
if (checkout / "coach_rl" / "__init__.py").exists():
    source = f"{checkout}[plot]"
if not (find_spec("coach_rl") and find_spec("matplotlib")):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", source], check=True)
"""


def notebook(markdown: str) -> str:
    """The page as a notebook; files that it names are written by their cells."""
    cells, end = [], 0
    for block in FENCE.finditer(markdown):
        cells.append(_cell("markdown", markdown[end : block.start()]))
        language, file, program = block.groups()
        if file:
            program = f"%%writefile {file}\n{program}"
        elif language == "bash":
            program = "\n".join(map(_command, program.splitlines()))
        cells.append(_cell("code", program))
        end = block.end()
    cells.append(_cell("markdown", markdown[end:]))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _command(line: str) -> str:
    program, _, words = line.partition(" ")
    if program == "pip":
        urls = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["urls"]
        return INSTALLATION % urls["Repository"]
    assert program == "coach", line
    plain = " --plain" if words.startswith("-p ") else ""
    return f"!{{sys.executable}} -m coach_rl {words}{plain}"


def _cell(kind: str, text: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}}
    cell["source"] = text.strip().splitlines(keepends=True)
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    PAGE.with_suffix(".ipynb").write_text(notebook(PAGE.read_text()))
