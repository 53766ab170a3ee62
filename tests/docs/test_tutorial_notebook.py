"""The tutorial's notebook: installed where it lies or where nothing is, and run by Jupyter."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parent.parent.parent
NOTEBOOK = CHECKOUT / "docs" / "tutorial.ipynb"
CELLS = [
    "".join(cell["source"])
    for cell in json.loads(NOTEBOOK.read_text())["cells"]
    if cell["cell_type"] == "code"
]
MOST_LINES = 500
"""Lines that a cell prints at most: `describe` takes 250, a panel redrawn into it took 1,837."""


def test_commands_run_in_the_kernels_python_in_plain_lines():
    commands = [line for cell in CELLS for line in cell.splitlines() if line.startswith(("!", "%"))]
    programs = [line for line in commands if not line.startswith("%%writefile ")]
    assert len(programs) >= 5
    for line in programs:
        assert line.startswith("!{sys.executable} -m coach_rl ")
        assert line.endswith(" --plain") or " -p " not in line


@pytest.mark.parametrize("place", ["docs of a checkout", "a bare folder"])
def test_first_cell_installs_from_the_checkout_or_from_the_repository(place, tmp_path, monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda words, **_: commands.append(words))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.chdir(NOTEBOOK.parent if place.startswith("docs") else tmp_path)
    exec(CELLS[0], {})
    ((*program, source),) = commands
    assert program == [sys.executable, "-m", "pip", "install", "--quiet"]
    from_address = re.fullmatch(r"coach_rl\[plot\] @ git\+https://\S+", source) is not None
    assert from_address == (place == "a bare folder")
    assert from_address or source == f"{CHECKOUT}[plot]"


def test_first_cell_installs_nothing_where_all_is_there(monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda words, **_: pytest.fail(str(words)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    exec(CELLS[0], {})


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_notebook_runs_from_a_bare_folder(tmp_path, monkeypatch):
    """As it is written, by Jupyter, without `coach` on PATH."""
    nbformat = pytest.importorskip("nbformat", reason="it comes with the extra dev")
    nbclient = pytest.importorskip("nbclient", reason="it comes with the extra dev")
    pytest.importorskip("ipykernel", reason="it comes with the extra dev")
    monkeypatch.setenv("PATH", os.defpath)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    printed = [text_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    for source, text in zip(CELLS, printed, strict=True):
        assert not re.search(r"coach: error|Traceback|not found|No module", text), (
            f"{source}\n{text}"
        )
        assert len(text.splitlines()) <= MOST_LINES, source
    docked = re.search(r"(\d+) of 10 episodes docked", printed[-1])
    assert docked is not None
    assert int(docked[1]) >= 9
    assert (tmp_path / "docking.png").exists()
    assert (tmp_path / "pictures" / "curves.png").exists()


def text_of(cell: Any) -> str:
    """All that a cell has printed."""
    return "".join(output.get("text", "") for output in cell.outputs)
