"""The causes of a run's failure, and what inspections found, in files of its folder.

`faults/step_4096.txt` has the message and other text, such as the traceback of an environment in a
worker process, `faults/step_4096.npz` the arrays where there are any.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.core.file_writing import make_folder, without_links
from coach_rl.core.records import Array


def write_columns(file: Path, columns: Mapping[str, Array]) -> None:
    """Write arrays by name, and the folder around them; OSError where they cannot be written."""
    make_folder(file.parent)
    with open(file, "wb", opener=without_links) as target:
        np.savez(target, allow_pickle=False, **columns)


def write_evidence(folder: Path, error: RunError, environment_steps: int) -> str:
    """Write an error's message, and what it carries besides.

    Args:
        folder: The run's.
        error: What stopped the run.
        environment_steps: Where it stood.

    Returns:
        The end of the error message, which says where its data are; empty if it carries none.
    """
    file = folder / "faults" / f"step_{environment_steps}"
    arrays = {name: part for name, part in error.evidence.items() if isinstance(part, np.ndarray)}
    texts = {name: part for name, part in error.evidence.items() if name not in arrays}
    try:
        make_folder(file.parent)
        paragraphs = [str(error), *(f"{name}:\n{text}" for name, text in texts.items())]
        with open(file.with_suffix(".txt"), "w", encoding="utf-8", opener=without_links) as target:
            target.write("\n\n".join(paragraphs) + "\n")
        if arrays:
            write_columns(file.with_suffix(".npz"), arrays)
    except OSError as failure:
        return f"; its data could not be written: {failure}" if error.evidence else ""
    return f"; its data are in {file}.*" if error.evidence else ""
